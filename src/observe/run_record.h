/* run_record.h -- the parts of a run's record that the files of src/observe share. */
#ifndef OBSERVE_RUN_RECORD_H
#define OBSERVE_RUN_RECORD_H

#include "observe/activations.h"
#include "observe/attention_scalars.h"
#include "observe/hooks.h"
#include "observe/layer_norms.h"
#include "observe/observe.h"
#include "observe/theorem_scalars.h"

struct run_record {
    sr_recorder *recorder;
    model *model;
    int shares, own_shares;       /* shards of every batch, of this process */
    int number;                   /* number of the current shard, among this process's */
    hooks *hooks;                 /* NULL unless sites are recorded */
    attention_scalars *attention; /* NULL unless they are asked for */
    activations *activations;     /* NULL unless they are */
    layer_norms *norms;           /* NULL unless they are */
    theorem_scalars *theorems;    /* NULL unless they are */
};

#endif
