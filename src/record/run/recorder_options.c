/* recorder_options.c -- takes and checks sr_options. */
#include "record/run/recorder_options.h"

#include <string.h>

#include "runfile/abi_struct.h"

/* Rejects a number that is out of its range. It is named, since SR_INIT(sr_options, ...) leaves 0
 * where SR_OPTIONS_DEFAULT has other values. */
static sr_status check_number(const char *name, double value, double least, sr_failure *why) {
    if (value >= least) return SR_OK;
    sr_fail(why, SR_USAGE, "sr_options: %s %g is less than %g", name, value, least);
    sr_hint(why, "begin with sr_options o = SR_OPTIONS_DEFAULT");
    return SR_USAGE;
}

static sr_status check_numbers(const sr_options *o, sr_failure *why) {
    const struct {
        const char *name;
        double value, least;
    } number[] = {{"vectors_every", (double)o->vectors_every, -1},
                  {"planned_steps", (double)o->planned_steps, 0},
                  {"planned_spectra", (double)o->planned_spectra, 0},
                  {"size_limit", (double)o->size_limit, 0},
                  {"flush_steps", (double)o->flush_steps, 1},
                  {"flush_seconds", o->flush_seconds, 0},
                  {"threads", o->threads, 0},
                  {"overhead", o->overhead, 0},
                  {"pairs", (double)o->pairs, 0}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (check_number(number[i].name, number[i].value, number[i].least, why) != SR_OK)
            return SR_USAGE;
    return SR_OK;
}

static sr_status check_reduction(const char *reduction, sr_failure *why) {
    if (reduction && (strcmp(reduction, "sum") == 0 || strcmp(reduction, "mean") == 0))
        return SR_OK;
    return sr_fail(why, SR_USAGE, "sr_options: loss_reduction %s%.80s%s is not 'sum' or 'mean'",
                   reduction ? "'" : "", reduction ? reduction : "NULL", reduction ? "'" : "");
}

sr_status recorder_take_options(sr_recorder *r, const sr_options *given, bool copies,
                                sr_failure *why) {
    const sr_options defaults = SR_OPTIONS_DEFAULT;
    r->options = defaults;
    if (!given) return SR_OK;
    sr_status status = abi_struct_take(&r->options, sizeof r->options, given, "sr_options", why);
    const sr_options *o = &r->options;
    if (status == SR_OK) status = check_numbers(o, why);
    if (status == SR_OK && !copies) status = check_reduction(o->loss_reduction, why);
    if (status != SR_OK) return status;
    if ((unsigned)o->sync > SR_SYNC_NONE)
        return sr_fail(why, SR_USAGE, "sr_options: sync %d is not one of sr_sync", (int)o->sync);
    if (o->ranks && strlen(o->ranks) >= SR_REASON_SIZE)
        return sr_fail(why, SR_USAGE, "sr_options: ranks of %zu bytes, not less than %d",
                       strlen(o->ranks), SR_REASON_SIZE);
    if (o->pairs <= INT32_MAX && (o->pairs == 0 || o->final)) return SR_OK;
    return sr_fail(why, SR_USAGE, "sr_options: pairs %lld %s", (long long)o->pairs,
                   o->final ? "of a site" : "without final");
}
