/* System V's objects outlive their process: see ipc/sysv.c. */
#ifndef IPC_NAMESPACE_H
#define IPC_NAMESPACE_H

/* Enters an IPC namespace of this process and those that it forks from now on, which ends with them, whatever
 * they die of. It takes CAP_SYS_ADMIN; without, all stays as it is. Asked for again, it stays there. */
void enter_ipc_namespace(void);

#endif
