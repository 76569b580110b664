/* optim_rows.h -- the rows that the optimizer files give to the table. A new one is a file and a
 * line here. */
#ifndef TRAIN_OPTIM_OPTIM_ROWS_H
#define TRAIN_OPTIM_OPTIM_ROWS_H

#include "train/optim/optim.h"

/* optim_NAME, and its word of --optimizer after a bar. */
#define OPTIMIZERS(X)                                                                              \
    X(sgd, "|sgd")                                                                                 \
    X(adam, "|adam")                                                                               \
    X(adamw, "|adamw")                                                                             \
    X(adam_fairseq, "|adam-fairseq")                                                               \
    X(adagrad, "|adagrad")

#define OPTIM_DECLARE(name, word) extern const optim_row optim_##name;
OPTIMIZERS(OPTIM_DECLARE)
#undef OPTIM_DECLARE

/* "sgd|adam|..." */
#define OPTIM_WORD(name, word) word
#define OPTIM_WORDS            (&(OPTIMIZERS(OPTIM_WORD))[1])

#endif
