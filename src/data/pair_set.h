#ifndef STATNET_PAIR_SET_H
#define STATNET_PAIR_SET_H
#include "statnet/data.h"
typedef struct pair_set {
    int x;
} pair_set;
#endif
