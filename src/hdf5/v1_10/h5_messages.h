/* h5_messages.h -- see h5_messages.c. */
#ifndef HDF5_V1_10_H5_MESSAGES_H
#define HDF5_V1_10_H5_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

/* False where a message of this type, not shared, takes up more bytes by what it says than it
   has. */
bool h5_message_fits(int type, const unsigned char *at, size_t length);

#endif
