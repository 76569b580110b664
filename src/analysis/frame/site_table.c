/* site_table.c -- a table about sites and steps: head, choice of both, rows. */

#include "analysis/frame/site_table.h"

#include <stdlib.h>

#include "analysis/frame/comparability.h"
#include "analysis/frame/stat_program.h"

static sr_status choose(site_table *t, sr_failure *why) {
    if (t->note) t->note(t);
    sr_status status = choice_set_sites(&t->chosen, t->set, t->site, t->source, &t->table, why);
    if (status == SR_FORMAT && t->hint) sr_hint(why, "%s", t->hint);
    if (status == SR_OK) choice_note_own(&t->chosen, t->set, true, &t->table);
    if (status == SR_OK && t->phase)
        status = windows_make(&t->window, t->set, t->startup, t->phase, &t->table, why);
    if (status == SR_OK && t->compares) comparable_warn(&t->chosen, t->set, &t->table);
    return status == SR_OK && t->check ? t->check(t, why) : status;
}

sr_status site_table_print(site_table *t, const char *command, sr_failure *why) {
    table_head head;
    sr_status status = table_head_begin(&head, &t->table, t->program, command, t->set, why);
    if (status == SR_OK) status = table_head_end(&head, &t->table, choose(t, why), why);
    if (status == SR_OK) status = t->rows(t, why);
    choice_free(&t->chosen);
    free(t->window);
    return status;
}
