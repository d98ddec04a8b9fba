/* How much memory each process of the sub-test `resident` keeps: the driver of a load sets it. */
#ifndef RESIDENT_H
#define RESIDENT_H

/* In MiB; 0 is the default, 8. */
extern long resident_mib_option;

#endif
