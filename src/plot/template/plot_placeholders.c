/* Words that a template leaves open: {site}, {stat}, {metric}, {step} and {steps}, and those that
 * it declares:
 *
 *   #: choice NAME WORD|WORD... HELP     the figure takes --NAME; the first word is the default
 *   #: word NAME CHOICE TEXT|TEXT...     {NAME} is the text at the place of the choice's word
 *
 * {NAME} may stand anywhere in a word of a command or in a column after x or y; gnuplot has a
 * variable NAME. A word of a command that becomes empty is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* -- declaring ------------------------------------------------------------------------------- */

const plot_word *plot_placeholders_find(const plot_template *t, const char *name, size_t length) {
    for (int i = 0; i < t->words; i++)
        if (strlen(t->word[i].name) == length && strncmp(t->word[i].name, name, length) == 0)
            return &t->word[i];
    return NULL;
}

/* Part number `i` of the texts; false past the last. */
static bool part_at(const char *texts, int i, char *part, size_t size) {
    const char *at = texts;
    for (; at && i > 0; i--) at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL;
    if (at) snprintf(part, size, "%.*s", (int)strcspn(at, "|"), at);
    return at != NULL;
}

static int parts_of(const char *texts) {
    int parts = 1;
    for (; (texts = strchr(texts, '|')); texts++) parts++;
    return parts;
}

/* Words that statplot's own options and variables have. */
static bool is_taken(const plot_template *t, const char *name) {
    static const char *const own[] = {
        "output", "labels", "keep",  "site",   "stat",  "metric",   "buckets", "published",
        "help",   "runs",   "run",   "shared", "title", "size",     "xrange",  "yrange",
        "log",    "linear", "steps", "smooth", "force", "max-runs", "step"};
    for (int i = 0; i < (int)(sizeof own / sizeof own[0]); i++)
        if (strcmp(own[i], name) == 0) return true;
    return plot_placeholders_find(t, name, strlen(name)) != NULL;
}

static const char *add_word(plot_template *t, const char *name, const char *texts,
                            plot_word **added) {
    if (is_taken(t, name)) return "a word that has a meaning already:";
    if (t->words == PLOT_CHOICES) return "too many choices and words at";
    plot_word *w = &t->word[t->words];
    if (strlen(texts) >= sizeof w->texts) return "too long:";
    *w = (plot_word){.choice = t->words++, .help = ""};
    snprintf(w->name, sizeof w->name, "%s", name);
    snprintf(w->texts, sizeof w->texts, "%s", texts);
    part_at(texts, 0, w->value, sizeof w->value);
    *added = w;
    return NULL;
}

const char *plot_placeholders_choice(plot_template *t, const char *name, const char *texts,
                                     const char *help) {
    plot_word *w;
    if (parts_of(texts) < 2 || strstr(texts, "||") || texts[0] == '|' ||
        texts[strlen(texts) - 1] == '|')
        return "a choice needs WORD|WORD:";
    const char *fault = add_word(t, name, texts, &w);
    if (!fault) w->help = help;
    return fault;
}

const char *plot_placeholders_follow(plot_template *t, const char *name, const char *choice,
                                     const char *texts) {
    const plot_word *of = plot_placeholders_find(t, choice, strlen(choice));
    const int place = of ? (int)(of - t->word) : -1;
    plot_word *w;
    if (!of || of->choice != place) return "no choice of that name before the word";
    if (parts_of(texts) != parts_of(of->texts)) return "not one text for every word of the choice:";
    const char *fault = add_word(t, name, texts, &w);
    if (!fault) w->choice = place;
    return fault;
}

/* -- choosing -------------------------------------------------------------------------------- */

bool plot_placeholders_take(const plot_template *t, const char *name, const char *value) {
    const plot_word *w = plot_placeholders_find(t, name, strlen(name));
    char part[PLOT_PART];
    for (int i = 0; w && w->choice == (int)(w - t->word) && part_at(w->texts, i, part, sizeof part);
         i++)
        if (strcmp(part, value) == 0) return true;
    return false;
}

static void set_place(plot_template *t, int choice, int place) {
    for (int i = 0; i < t->words; i++)
        if (t->word[i].choice == choice)
            part_at(t->word[i].texts, place, t->word[i].value, sizeof t->word[i].value);
}

sr_status plot_placeholders_choose(plot_template *t, const plot_choice *c, sr_failure *why) {
    char part[PLOT_PART];
    for (int k = 0; k < c->words; k++) {
        const char *name = c->word[k].name, *value = c->word[k].value;
        const plot_word *w = plot_placeholders_find(t, name, strlen(name));
        if (!w || w->choice != (int)(w - t->word))
            return sr_fail(why, SR_USAGE, "figure %s takes no --%s", t->name, name);
        if (!plot_placeholders_take(t, name, value))
            return sr_fail(why, SR_USAGE, "figure %s: --%s '%.80s' is not one of %s", t->name, name,
                           value, w->texts);
        for (int i = 0; part_at(w->texts, i, part, sizeof part); i++)
            if (strcmp(part, value) == 0) set_place(t, w->choice, i);
    }
    return SR_OK;
}

/* -- filling in ------------------------------------------------------------------------------ */

/* The replacement of the name, NULL when the template has no such word. */
static const char *value_of(const plot_template *t, const char *name, size_t length) {
    const plot_word *w = plot_placeholders_find(t, name, length);
    if (w) return w->value;
    if (length == 4 && strncmp(name, "site", 4) == 0) return t->site;
    if (length == 4 && strncmp(name, "stat", 4) == 0) return t->stat;
    if (length == 6 && strncmp(name, "metric", 6) == 0) return t->metric;
    if (length == 4 && strncmp(name, "step", 4) == 0) return t->step;
    if (length == 5 && strncmp(name, "steps", 5) == 0) return t->steps;
    return NULL;
}

bool plot_placeholders_fill(const plot_template *t, const char *text, char *filled, size_t size) {
    size_t used = 0;
    while (*text) {
        const size_t length = text[0] == '{' ? strcspn(text + 1, "}") : 0;
        const char *value = length && text[length + 1] ? value_of(t, text + 1, length) : NULL;
        const size_t capacity = value ? strlen(value) : 1;
        if (used + capacity >= size) return false;
        memcpy(filled + used, value ? value : text, capacity);
        used += capacity;
        text += value ? length + 2 : 1;
    }
    filled[used] = 0;
    return true;
}

static sr_status fill_table(plot_template *t, plot_table *table, sr_failure *why) {
    char filled[2 * PLOT_PATH];
    int kept = 0;
    for (int i = 0; i < table->words; i++) {
        char *word = table->word[i];
        if (!plot_placeholders_fill(t, word, filled, sizeof filled))
            return sr_fail(why, SR_USAGE, "figure %s: '%.80s' becomes too long", t->name, word);
        if (!filled[0] && strcmp(word, filled) != 0) continue;
        if (strcmp(word, filled) != 0) {
            if (!(word = strdup(filled))) return sr_fail(why, SR_MEMORY, "out of memory");
            t->filled[t->fills++] = word;
        }
        table->word[kept++] = word;
    }
    table->words = kept;
    return SR_OK;
}

sr_status plot_placeholders_fill_commands(plot_template *t, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < t->tables && status == SR_OK; i++)
        status = fill_table(t, &t->table[i], why);
    return status;
}
