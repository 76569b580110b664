/* abi_struct.h -- copies structs whose first member is their size (statrec/base.h) between programs
 * and the library. */
#ifndef RUNFILE_ABI_STRUCT_H
#define RUNFILE_ABI_STRUCT_H

#include <stddef.h>

#include "statrec/base.h"

/* Copies a caller's struct to the library's [size]; members that an older caller lacks keep their
 * values. SR_USAGE with the struct's name if it is NULL, has no size, or sets unknown members. */
sr_status abi_struct_take(void *to, size_t size, const void *from, const char *name,
                          sr_failure *why);

/* Copies the library's struct to the caller's, cut to the caller's size. */
sr_status abi_struct_give(void *to, const void *ours, size_t size, const char *name,
                          sr_failure *why);

#endif
