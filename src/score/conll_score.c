/* conll_score.c -- counts and output of conlleval.pl (E. Tjong Kim Sang, 2004-01-26), the scorer of
 * CoNLL-2000 to 2003.
 *
 * Gold and predicted phrases are compared word by word. A phrase is correct if start, end and type
 * are equal. `open`: they may still be equal.
 *
 *     P = correct / found, R = correct / gold, FB1 = 2 P R / (P + R), in percent, 0 for 0/0
 *
 * These peculiarities of the script are kept. A type "0" counts as no type. Between E and B a
 * phrase ends only by its type. So it does at S and other parts than B I O E . [ ]. Phrases without
 * a type are printed twice if both texts have some.
 */
#include "score/conll_score.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "text/tag_set.h"

typedef enum { PART_O, PART_B, PART_I, PART_E, PART_DOT, PART_BRACKET, PART_OTHER } part;

/* A tag; without a type: type 0, "". */
typedef struct mark {
    part part;
    int32_t type;
} mark;

typedef struct type_counts {
    int64_t gold, found, correct;
} type_counts;

struct conll_scorer {
    tag_types types;
    type_counts *of_type; /* [capacity] */
    int64_t capacity;
    mark gold, found; /* marks of the previous token */
    bool open;
    conll_counts sum; /* without an open phrase */
};

conll_scorer *conll_create(void) {
    conll_scorer *s = calloc(1, sizeof *s);
    if (s && tag_types_add(&s->types, "", 0) == 0) return s;
    conll_free(s);
    return NULL;
}

void conll_free(conll_scorer *s) {
    if (!s) return;
    tag_types_free(&s->types);
    free(s->of_type);
    free(s);
}

/* -- tags */

/* Bytes before the hyphen. */
static size_t cut(conll_tag tag) {
    const char *hyphen = tag.size ? memchr(tag.byte, '-', tag.size) : NULL;
    return hyphen ? (size_t)(hyphen - tag.byte) : tag.size;
}

static bool read_mark(conll_scorer *s, conll_tag tag, mark *m) {
    const size_t size = cut(tag), skip = size < tag.size ? size + 1 : size;
    size_t length = tag.size - skip;
    if (length == 1 && tag.byte[skip] == '0') length = 0; /* false in Perl */
    static const char letters[] = "OBIE.[]";
    static const part parts[] = {PART_O,   PART_B,       PART_I,      PART_E,
                                 PART_DOT, PART_BRACKET, PART_BRACKET};
    const char *at = size == 1 && *tag.byte ? strchr(letters, *tag.byte) : NULL;
    *m = (mark){at ? parts[at - letters] : PART_OTHER,
                tag_types_add(&s->types, tag.byte + skip, length)};
    return m->type >= 0;
}

/* -- phrases */

/* A part outside phrases, whatever its type. */
static bool is_silent(part p) {
    return p == PART_O || p == PART_DOT;
}

static bool ends(mark before, mark m) {
    if (before.part == PART_BRACKET) return true;
    if (!is_silent(before.part) && before.type != m.type) return true;
    if (before.part == PART_B || before.part == PART_I) return m.part == PART_B || m.part == PART_O;
    return before.part == PART_E && (m.part == PART_E || m.part == PART_I || m.part == PART_O);
}

static bool starts(mark before, mark m) {
    if (m.part == PART_BRACKET) return true;
    if (!is_silent(m.part) && before.type != m.type) return true;
    if (m.part == PART_B)
        return before.part == PART_B || before.part == PART_I || before.part == PART_O;
    return (m.part == PART_I || m.part == PART_E) &&
           (before.part == PART_E || before.part == PART_O);
}

static void step(conll_scorer *s, mark gold, mark found) {
    const bool gold_ends = ends(s->gold, gold), found_ends = ends(s->found, found);
    const bool gold_starts = starts(s->gold, gold), found_starts = starts(s->found, found);
    if (s->open && gold_ends && found_ends && s->gold.type == s->found.type) {
        s->sum.correct++;
        s->of_type[s->gold.type].correct++;
        s->open = false;
    } else if (gold_ends != found_ends || gold.type != found.type) {
        s->open = false;
    }
    if (gold_starts && found_starts && gold.type == found.type) s->open = true;
    s->sum.gold += gold_starts;
    s->sum.found += found_starts;
    s->of_type[gold.type].gold += gold_starts;
    s->of_type[found.type].found += found_starts;
    s->sum.stray_gold += gold_starts && gold.part == PART_I;
    s->sum.stray_found += found_starts && found.part == PART_I;
    s->gold = gold, s->found = found;
}

sr_status conll_add(conll_scorer *s, conll_tag gold, conll_tag found, sr_failure *why) {
    mark g, f;
    const int64_t before = s->capacity;
    if (!read_mark(s, gold, &g) || !read_mark(s, found, &f) ||
        !vector_reserve(&s->of_type, &s->capacity, s->types.names.count, sizeof *s->of_type))
        return sr_fail(why, SR_MEMORY, "out of memory for the types of phrases");
    memset(s->of_type + before, 0, (size_t)(s->capacity - before) * sizeof *s->of_type);
    s->sum.tokens++;
    const size_t size = cut(gold);
    s->sum.right += g.type == f.type && size == cut(found) &&
                    (!size || memcmp(gold.byte, found.byte, size) == 0);
    s->sum.unknown += g.part == PART_OTHER;
    s->sum.unknown += f.part == PART_OTHER;
    step(s, g, f);
    return SR_OK;
}

void conll_end_sentence(conll_scorer *s) {
    if (s->capacity) step(s, (mark){PART_O, 0}, (mark){PART_O, 0});
}

conll_counts conll_sum(const conll_scorer *s) {
    conll_counts sum = s->sum;
    sum.correct += s->open;
    return sum;
}

/* -- output */

typedef struct named_type {
    const char *name;
    type_counts counts;
} named_type;

static int compare_names(const void *a, const void *b) {
    return strcmp(((const named_type *)a)->name, ((const named_type *)b)->name);
}

/* Prints the types of phrases, bytes ascending. */
static sr_status print_types(const conll_scorer *s, bool latex, FILE *out, sr_failure *why) {
    int32_t count = 0;
    named_type *list = calloc((size_t)s->types.names.count, sizeof *list);
    if (!list) return sr_fail(why, SR_MEMORY, "out of memory for the types of phrases");
    for (int32_t i = 0; i < s->capacity && i < s->types.names.count; i++) {
        type_counts c = s->of_type[i];
        if (!c.gold && !c.found) continue;
        c.correct += s->open && s->gold.type == i;
        list[count++] = (named_type){tag_types_name(&s->types, i), c};
    }
    qsort(list, (size_t)count, sizeof *list, compare_names);
    for (int32_t i = 0; i < count; i++) {
        const bool twice = !*list[i].name && list[i].counts.gold && list[i].counts.found;
        const type_counts c = list[i].counts;
        const entity_scores p = entity_scores_of(c.correct, c.found, c.gold);
        for (int k = 0; k <= twice; k++)
            if (latex)
                fprintf(out, "\n%-7s &  %6.2f\\%% & %6.2f\\%% & %6.2f \\\\", list[i].name,
                        p.precision, p.recall, p.f1);
            else
                fprintf(out, "%17s: precision: %6.2f%%; recall: %6.2f%%; FB1: %6.2f  %lld\n",
                        list[i].name, p.precision, p.recall, p.f1, (long long)c.found);
    }
    free(list);
    return SR_OK;
}

static void print_overall(const conll_counts *sum, bool latex, FILE *out) {
    const entity_scores p = entity_scores_of(sum->correct, sum->found, sum->gold);
    if (latex) {
        fprintf(out, "\\hline\nOverall &  %6.2f\\%% & %6.2f\\%% & %6.2f \\\\\\hline\n", p.precision,
                p.recall, p.f1);
        return;
    }
    fprintf(out, "processed %lld tokens with %lld phrases; found: %lld phrases; correct: %lld.\n",
            (long long)sum->tokens, (long long)sum->gold, (long long)sum->found,
            (long long)sum->correct);
    if (sum->tokens)
        fprintf(out, "accuracy: %6.2f%%; precision: %6.2f%%; recall: %6.2f%%; FB1: %6.2f\n",
                100. * (double)sum->right / (double)sum->tokens, p.precision, p.recall, p.f1);
}

sr_status conll_print(const conll_scorer *s, bool latex, FILE *out, sr_failure *why) {
    const conll_counts sum = conll_sum(s);
    if (latex)
        fputs("        & Precision &  Recall  & F$_{\\beta=1} \\\\\\hline", out);
    else
        print_overall(&sum, false, out);
    const sr_status status = print_types(s, latex, out, why);
    if (latex) print_overall(&sum, true, out);
    return status;
}
