/* methods.h -- the methods by the name of their file (norm_NAME in NAME.c). */
#ifndef NORM_METHODS_H
#define NORM_METHODS_H

#include "statnet/norm.h"

#define NORM_METHODS(X)                                                                            \
    X(none)                                                                                        \
    X(bn)                                                                                          \
    X(pnv)                                                                                         \
    X(ln)

#define NORM_DECLARE(name) extern const norm_method norm_##name;
NORM_METHODS(NORM_DECLARE)
#undef NORM_DECLARE

#endif
