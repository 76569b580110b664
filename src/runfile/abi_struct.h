/* abi_struct.h -- structs that begin with their size (statrec/base.h), across the border between
 * programs and library. */
#ifndef RUNFILE_ABI_STRUCT_H
#define RUNFILE_ABI_STRUCT_H

#include <stddef.h>

#include "statrec/base.h"

/* The caller's struct into ours [size]: what an older one lacks stays as it is there. SR_USAGE,
 * naming the struct, where it is NULL, has no size, or says something that we do not know. */
sr_status abi_struct_take(void *to, size_t size, const void *from, const char *name,
                          sr_failure *why);

/* Ours into the caller's, as much as it has room for. */
sr_status abi_struct_give(void *to, const void *ours, size_t size, const char *name,
                          sr_failure *why);

#endif
