/* descriptor.h -- numbers of open files. */
#ifndef BASE_DESCRIPTOR_H
#define BASE_DESCRIPTOR_H

/* The file under a number above 2, for what open() returned: -1, with errno, stays. A program or
 * host may have closed 0 to 2, and its messages must not go into a data file. The old number is
 * closed; the new one is closed on exec. */
int descriptor_above_standard(int fd);

#endif
