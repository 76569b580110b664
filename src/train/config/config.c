/* config.c -- the option table of a training run: rows of its parts, then options of version
   0.1. */
#include <string.h>

#include "train/config/config_rows.h"

enum { MOST = 256 };

static void append(option all[MOST], int *count, option_table part) {
    const int room = MOST - *count, rows = part.count < room ? part.count : room;
    memcpy(all + *count, part.row, (size_t)rows * sizeof *all);
    *count += rows;
}

option_table train_options(void) {
    static option all[MOST];
    static int count;
    const norm_option *o;
    if (count) return (option_table){all, count};
    append(all, &count, config_model);
    append(all, &count, config_data);
    append(all, &count, config_training);
    append(all, &count, config_recording);
    for (int i = 0; (o = norm_option_at(i)) && count < MOST; i++)
        all[count++] = (option)TEXT_OPTION(
            OLD, o->key, AT(model.norm_param) + (size_t)i * MODEL_TEXT, "", o->help, .old = true);
    return (option_table){all, count};
}
