/* recover.c -- copies a broken run file into a new, finished one with the same declarations and
 * every readable row (copy_rows.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/recorder_state.h"
#include "runfile/abi_struct.h"
#include "runfile/repair/copy.h"
#include "runfile/repair/copy_declare.h"

typedef struct noting {
    const sr_runfile *broken;
    unreadable_data *losses;
} noting;

static bool is_repaired(const sr_runfile *f, const sr_failure *fault) {
    const char *text;
    for (int i = 0; (text = sr_run_repaired(f, i)); i++)
        if (!strcmp(text, fault->text)) return true;
    return false;
}

/* Notes faults that the check found and copying did not: missing columns. */
static void note_fault(void *context, const sr_failure *fault) {
    const noting *to = context;
    char name[2 * SR_NAME_SIZE] = "";
    const char *at = fault->text + strnlen(fault->text, strlen(to->broken->path)),
               *dataset = strchr(at, '/');
    if (fault->status != SR_FORMAT || !dataset || is_repaired(to->broken, fault)) return;
    snprintf(name, sizeof name, "%s", dataset + 1);
    if (strncmp(at, ": no dataset /", 14) != 0) name[strcspn(name, ": ")] = 0;
    copy_missed(to->losses, name, "", -1, fault);
}

static sr_status copy_all(sr_recorder *r, sr_runfile *f, int64_t up_to_step, sr_recovery *count,
                          unreadable_data *losses) {
    sr_failure why = {0};
    noting to = {f, losses};
    copy_add_sites(r, f, NULL, losses);
    copy_add_embeddings(r, f, losses);
    copy_add_metrics(r, f, NULL, losses);
    copy_take_texts(r, f, losses);
    recorder_copy_rows(r, f, NULL, up_to_step, count, losses);
    const sr_failure *failed = sr_failed(r);
    if (!failed && sr_run_check_all(f->path, note_fault, &to, &why) == SR_MEMORY)
        return sr_fail(&r->failure, SR_MEMORY, "%s", why.text);
    return failed ? failed->status : unreadable_data_check(losses, f->path, &r->failure);
}

static sr_status close_recovered(sr_recorder *r, const sr_runfile *f, const sr_recovery *count,
                                 const unreadable_data *losses, sr_failure *why) {
    char reason[SR_REASON_SIZE], more[48] = "";
    if (losses->count)
        snprintf(more, sizeof more, ", %d damaged dataset%s", losses->count,
                 losses->count > 1 ? "s" : "");
    snprintf(reason, sizeof reason, "recovered from %.150s: %lld steps lost%s", f->path,
             (long long)count->lost_steps, more);
    return sr_close(r, &SR_INIT(sr_finish, .status = "interrupted", .reason = reason), why);
}

/* Removes the new file. A rejected declaration is here a fault of the broken file, not of a
 * caller. */
static sr_status give_up(sr_recorder *r, const sr_runfile *f, sr_failure *why) {
    sr_failure failed = {0};
    const char *text = copy_refused(r);
    if (text)
        sr_fail(&failed, SR_FORMAT, "%s: %s", f->path, text);
    else
        failed = *sr_failed(r);
    if (why->status == SR_OK) *why = failed;
    unlink(r->part);
    sr_abandon(r);
    return failed.status;
}

static sr_status recover(sr_runfile *f, const char *path, bool force, int64_t up_to_step,
                         sr_recovery *count, unreadable_data *losses, sr_failure *why) {
    char part[4096];
    if (copy_check_target(f->path, path, why) != SR_OK) return why->status;
    sr_options o = copy_options_like(f, &f->info);
    o.force = force;
    sr_recorder *r = recorder_create(path, &o, true, why);
    if (!r) return why->status;
    if (copy_all(r, f, up_to_step, count, losses) != SR_OK) return give_up(r, f, why);
    snprintf(part, sizeof part, "%s", r->part);
    sr_status status = close_recovered(r, f, count, losses, why);
    if (status != SR_OK && status != SR_EXISTS) unlink(part);
    return status;
}

sr_status sr_run_recover_report(const char *broken, const char *path, bool force,
                                int64_t up_to_step, sr_recovery *result, sr_lost_fn *report,
                                void *context, sr_failure *why) {
    sr_recovery count = SR_INIT(sr_recovery, .running_step = -1);
    unreadable_data losses = {0};
    sr_failure own = {0};
    if (!why) why = &own;
    if (!path || !*path) return sr_fail(why, SR_USAGE, "no path for the recovered file");
    sr_runfile *f = sr_run_open(broken, why);
    sr_status status = f ? recover(f, path, force, up_to_step, &count, &losses, why) : why->status;
    if (status == SR_OK) unreadable_data_report(&losses, report, context);
    free(losses.entry);
    sr_run_close(f);
    if (result && abi_struct_give(result, &count, sizeof count, "sr_recovery", why) != SR_OK)
        status = why->status;
    return status;
}

sr_status sr_run_recover(const char *broken, const char *path, bool force, int64_t up_to_step,
                         sr_recovery *result, sr_failure *why) {
    return sr_run_recover_report(broken, path, force, up_to_step, result, NULL, NULL, why);
}
