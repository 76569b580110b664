/* cmd_info_checkpoint.c -- statrec info X.ckpt: prints the metadata of a checkpoint. */
#include <stdio.h>
#include <string.h>

#include "base/tsv.h"
#include "cli/info/cmd_info_parts.h"
#include "train/loaded_model.h"

static void print_line(const char *key, const char *text) {
    if (!*text) return;
    printf("%-14s", key);
    tsv_escape(stdout, text);
    putchar('\n');
}

sr_status checkpoint_info(const char *path, bool options, sr_failure *why) {
    checkpoint_card c;
    sr_status status = checkpoint_info_read(path, &c, why);
    if (status == SR_OK) {
        print_line("checkpoint", path);
        print_line("model", c.model);
        print_line("data", c.data);
        print_line("task", c.task);
        printf("%-14s%lld\n", "updates", (long long)c.updates);
        if (c.steps >= 0) printf("%-14s%lld\n", "steps", (long long)c.steps);
        printf("%-14s%lld\n", "parameters", (long long)c.parameters);
        print_line("weights", c.weights_digest);
        print_line("made of", c.origin);
        print_line("version", c.version);
        if (options) tsv_plain(stdout, c.config, strlen(c.config));
    }
    checkpoint_info_free(&c);
    return status;
}
