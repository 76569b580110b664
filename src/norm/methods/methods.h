/* methods.h -- the methods by name (norm_NAME). */
#ifndef NORM_METHODS_METHODS_H
#define NORM_METHODS_METHODS_H

#include "norm/kernels/norm_method.h"

#define NORM_METHODS(X)                                                                            \
    X(none)                                                                                        \
    X(bn)                                                                                          \
    X(rbn)                                                                                         \
    X(brn)                                                                                         \
    X(mabn)                                                                                        \
    X(pnv)                                                                                         \
    X(pn)                                                                                          \
    X(ln)                                                                                          \
    X(ln_simple)                                                                                   \
    X(detach_mean)                                                                                 \
    X(detach_std)                                                                                  \
    X(detach_both)                                                                                 \
    X(adanorm)                                                                                     \
    X(rmsnorm)                                                                                     \
    X(groupnorm)                                                                                   \
    X(instancenorm)                                                                                \
    X(pn_released)                                                                                 \
    X(bn_powernorm)                                                                                \
    X(rbn_released)                                                                                \
    X(un)                                                                                          \
    X(repbn)                                                                                       \
    X(unit)                                                                                        \
    X(dyt)                                                                                         \
    X(derf)

#define NORM_DECLARE(name) extern const norm_method norm_##name;
NORM_METHODS(NORM_DECLARE)
#undef NORM_DECLARE

#endif
