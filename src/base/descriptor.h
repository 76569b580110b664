/* descriptor.h -- numbers of open files. */
#ifndef BASE_DESCRIPTOR_H
#define BASE_DESCRIPTOR_H

/* Moves a file that open() returned to a number above 2: -1, with errno, stays. A program or host
 * may have closed 0 to 2, and its messages must not go into a data file. The old number is closed;
 * the new one is closed on exec. */
int descriptor_above_standard(int fd);

#endif
