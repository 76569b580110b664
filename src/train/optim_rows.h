/* optim_rows.h -- the rows that the optimizer files give to the table. */
#ifndef TRAIN_OPTIM_ROWS_H
#define TRAIN_OPTIM_ROWS_H

#include "statnet/optim.h"

extern const optim_row optim_sgd, optim_adam, optim_adamw, optim_adam_fairseq, optim_adagrad;

#endif
