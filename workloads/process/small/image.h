#ifdef WEIGH_ANY_IMAGE
#error "add the source that includes this to `per_image` in workloads/Makefile"
#endif

/* How many system calls it takes to start this executable, from execve(2) to main(), measured with strace
 * on x86-64 with glibc 2.36. Without a dynamic loader there are few. */
#ifdef WEIGH_STATIC
#define IMAGE_SYSCALLS 14
#define IMAGE_NOTE "for a static executable with glibc 2.36 on x86-64"
#else
#define IMAGE_SYSCALLS 29
#define IMAGE_NOTE "with the dynamic loader of glibc 2.36 on x86-64, loading libc"
#endif
