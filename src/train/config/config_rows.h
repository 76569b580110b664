/* config_rows.h -- macros for rows of the option table of a training run, and the parts that
   config.c joins. */
#ifndef TRAIN_CONFIG_CONFIG_ROWS_H
#define TRAIN_CONFIG_CONFIG_ROWS_H

#include "train/trainer.h"

#define AT(field) offsetof(train_config, field)
#define TEXT(group, key, field, default_text, ...)                                                 \
    TEXT_OPTION(group, key, AT(field), default_text, __VA_ARGS__)
#define CHOICE(group, key, field, default_text, words, ...)                                        \
    CHOICE_OPTION(group, key, AT(field), default_text, words, __VA_ARGS__)
#define INT(group, key, field, default_text, low, high, unit, ...)                                 \
    INT_OPTION(group, key, AT(field), default_text, low, high, unit, __VA_ARGS__)
#define REAL(group, key, field, default_text, low, high, unit, ...)                                \
    REAL_OPTION(group, key, AT(field), default_text, low, high, unit, __VA_ARGS__)
#define FLAG(group, key, field, default_text, ...)                                                 \
    FLAG_OPTION(group, key, AT(field), default_text, __VA_ARGS__)

#define MODEL      "Model"
#define DATA       "Data"
#define TRAIN      "Training"
#define RECORD     "Recording"
#define CHECKPOINT "Checkpoints"
#define OLD        "Parameters of normalizations in version 0.1"

enum { BIG = 1 << 30 };

/* Whether the chosen model, data set or optimizer obeys the option with this key. */
bool config_model_lists(const void *values, const char *key);
bool config_data_lists(const void *values, const char *key);
bool config_optim_lists(const void *values, const char *key);

/* Moves values of old options into --norm, --decoder-norm, --norm-at and --qk-norm. */
void config_fold_norm_params(train_config *c);

/* The parts, each in its file. */
extern const option_table config_model, config_data, config_training, config_recording;

#endif
