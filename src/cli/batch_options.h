/* batch_options.h -- options of commands that read texts in other batches than the run had: rows of
 * an option table. */
#ifndef CLI_BATCH_OPTIONS_H
#define CLI_BATCH_OPTIONS_H

#include "base/options/options.h"

/* "": as the run. Both are text fields at the offset in the values. */
#define BATCH_ROWS(group, at_batching, at_max_tokens_of)                                           \
    CHOICE_OPTION(group, "batching", at_batching, "", "bucketed|sorted|random",                    \
                  "texts: put these sentences into a batch; empty: as the run"),                   \
        CHOICE_OPTION(group, "max-tokens-of", at_max_tokens_of, "", "padded|valid",                \
                      "texts: count these positions in its limit; empty: as the run")

#endif
