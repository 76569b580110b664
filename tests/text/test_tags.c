/* Tags: the entities of a sequence, conversion, grammars, recognition of the scheme, tag
 * dictionaries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "testing/check.h"
#include "testing/mark_spans.h"
#include "text/tag_set.h"

enum { WORDS = 40 };

typedef struct sentence {
    tag_mark mark[WORDS];
    int64_t words;
    tag_types types;
} sentence;

/* Tags between blanks. */
static sentence read_sentence(const char *text) {
    sentence s = {0};
    tag_column c = tag_column_start("text", TAG_ANY);
    sr_failure why = {0};
    while (*text) {
        const size_t length = strcspn(text, " ");
        c.possible = ~0u; /* legal in several schemes */
        check_ok(tag_column_add(&c, &s.types, 1, text, length, &s.mark[s.words++], &why), &why);
        text += length + (text[length] == ' ');
    }
    return s;
}

static void check_spans(const char *tags, const char *want) {
    sentence s = read_sentence(tags);
    tag_span span[WORDS];
    char text[512] = "";
    const int64_t n = mark_spans(&s.types, s.mark, s.words, span);
    assert_int_equal(mark_spans(&s.types, s.mark, s.words, NULL), n);
    for (int64_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %d-%d", i ? ", " : "",
                 tag_types_name(&s.types, span[i].type), (int)span[i].first, (int)span[i].last);
    assert_string_equal(text, want);
    tag_types_free(&s.types);
}

static void entities_of_every_scheme(void **state) {
    (void)state;
    check_spans("I-P I-P O I-L B-L I-L I-G", "P 0-1, L 3-3, L 4-5, G 6-6");
    check_spans("B-P I-P B-P O B-G", "P 0-1, P 2-2, G 4-4");
    check_spans("S-P B-L I-L E-L O S-G", "P 0-0, L 1-3, G 5-5");
    check_spans("B-N M-N E-N S-R O", "N 0-2, R 3-3");
    check_spans("B-N M-N E-N W-R W-R", "N 0-2, R 3-3, R 4-4");
    check_spans("U-P B-L I-L L-L O U-G", "P 0-0, L 1-3, G 5-5");
    check_spans("B M E S S B E", " 0-2,  3-3,  4-4,  5-6");
    check_spans("B-A-B I-A-B I-A", "A-B 0-1, A 2-2");
    check_spans("O O", "");
}

static void entities_of_illegal_sequences(void **state) {
    (void)state;
    check_spans("O I-P", "P 1-1");
    check_spans("I-P I-L", "P 0-0, L 1-1");
    check_spans("B-P I-L I-L", "P 0-0, L 1-2");
    check_spans("B-P O", "P 0-0");
    check_spans("B-P S-P E-P", "P 0-0, P 1-1, P 2-2");
    check_spans("B-P E-P I-P", "P 0-1, P 2-2");
    check_spans("B-P E-P E-P", "P 0-1, P 2-2");
    check_spans("S-P I-P E-P", "P 0-0, P 1-2");
    check_spans("E-P E-P", "P 0-0, P 1-1");
    check_spans("I-P E-L", "P 0-0, L 1-1");
    check_spans("B-P I-P", "P 0-1");
}

static void convert(const char *from, tag_scheme scheme, const char *want) {
    sentence s = read_sentence(from);
    char text[512] = "";
    tag_convert(scheme, s.mark, s.words, s.mark);
    for (int64_t i = 0; i < s.words; i++) {
        char tag[TAG_NAME];
        const int32_t type = s.mark[i].type;
        tag_format(scheme, s.mark[i].part, type < 0 ? NULL : tag_types_name(&s.types, type), tag);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", tag);
    }
    assert_string_equal(text, want);
    tag_types_free(&s.types);
}

static void conversion(void **state) {
    (void)state;
    static const char iob1[] = "I-P I-P O I-L B-L I-L I-G";
    convert(iob1, TAG_IOB1, iob1);
    convert(iob1, TAG_IOB2, "B-P I-P O B-L B-L I-L B-G");
    convert(iob1, TAG_BIOES, "B-P E-P O S-L B-L E-L S-G");
    convert(iob1, TAG_BMES, "B-P E-P O S-L B-L E-L S-G");
    convert("B-P I-P I-P B-P O", TAG_BMEWO, "B-P M-P E-P W-P O");
    convert("B-P I-P I-P B-P O", TAG_BILOU, "B-P I-P L-P U-P O");
    convert("B-P I-P I-P B-P O", TAG_IOB1, "I-P I-P I-P B-P O");
    convert("B-P M-P E-P S-P S-L", TAG_IOB1, "I-P I-P I-P B-P I-L");
    convert("B M E S", TAG_IOB2, "B I I B");
}

/* -- random entities, written here */

static const char *const types[] = {"PER", "LOC", "ORG"};
enum { TYPES = 3 };

typedef struct entity {
    int type, first, last; /* type -1: words outside */
} entity;

static int draw(rng *r, int n) {
    return (int)(rng_next(r) % (uint64_t)n);
}

/* Adjacent segments that fill the sentence. */
static int draw_entities(rng *r, entity piece[WORDS], int words) {
    int n = 0;
    for (int at = 0; at < words; n++) {
        const int longest = words - at < 4 ? words - at : 4, length = 1 + draw(r, longest);
        piece[n] = (entity){draw(r, 5) - 1, at, at + length - 1};
        if (piece[n].type == 3) piece[n].type = 0; /* the same type side by side, often */
        at += length;
    }
    return n;
}

static char letter_of(tag_scheme scheme, const entity *e, int before, int i) {
    const bool first = i == e->first, last = i == e->last;
    switch (scheme) {
    case TAG_IOB1:
        return first && before == e->type ? 'B' : 'I';
    case TAG_IOB2:
        return first ? 'B' : 'I';
    case TAG_BIOES:
        return "IEBS"[2 * first + last];
    case TAG_BMES:
        return "MEBS"[2 * first + last];
    case TAG_BMEWO:
        return "MEBW"[2 * first + last];
    default:
        return "ILBU"[2 * first + last];
    }
}

static void write_tags(tag_scheme scheme, const entity *piece, int pieces, char tag[WORDS][16]) {
    int before = -1;
    for (int k = 0; k < pieces; before = piece[k++].type)
        for (int i = piece[k].first; i <= piece[k].last; i++)
            if (piece[k].type < 0)
                strcpy(tag[i], "O");
            else
                snprintf(tag[i], 16, "%c-%s", letter_of(scheme, &piece[k], before, i),
                         types[piece[k].type]);
}

/* Tags written in one scheme read back as that scheme and convert to every other. */
static void every_scheme_into_every_other(void **state) {
    (void)state;
    rng r = rng_create(5);
    for (int round = 0; round < 600; round++) {
        const tag_scheme from = (tag_scheme)(round % TAG_SCHEMES);
        const tag_scheme to = (tag_scheme)(round / TAG_SCHEMES % TAG_SCHEMES);
        entity piece[WORDS];
        char in[WORDS][16], out[WORDS][16];
        tag_mark mark[WORDS];
        tag_types known = {0};
        sr_failure why = {0};
        const int words = 1 + draw(&r, WORDS), pieces = draw_entities(&r, piece, words);
        write_tags(from, piece, pieces, in);
        write_tags(to, piece, pieces, out);
        tag_column c = tag_column_start("text", TAG_ANY);
        for (int i = 0; i < words; i++)
            check_ok(tag_column_add(&c, &known, i, in[i], strlen(in[i]), &mark[i], &why), &why);
        tag_column_end_sentence(&c);
        assert_int_equal(c.illegal[from], 0);
        tag_convert(to, mark, words, mark);
        for (int i = 0; i < words; i++) {
            char tag[TAG_NAME];
            tag_format(to, mark[i].part,
                       mark[i].type < 0 ? NULL : tag_types_name(&known, mark[i].type), tag);
            assert_string_equal(tag, out[i]);
        }
        tag_types_free(&known);
    }
}

/* -- any sequence: entities taken one after the other from the left */

static int scan(const tag_mark *m, int words, tag_span *span) {
    int n = 0;
    for (int i = 0; i < words;) {
        if (m[i].part == TAG_OUTSIDE) {
            i++;
            continue;
        }
        int k = i;
        bool goes_on = m[i].part == TAG_BEGIN || m[i].part == TAG_INSIDE;
        while (goes_on && k + 1 < words && m[k + 1].type == m[i].type &&
               (m[k + 1].part == TAG_INSIDE || m[k + 1].part == TAG_END)) {
            k++;
            goes_on = m[k].part == TAG_INSIDE;
        }
        span[n++] = (tag_span){m[i].type, i, k};
        i = k + 1;
    }
    return n;
}

static void random_sequences(void **state) {
    (void)state;
    rng r = rng_create(6);
    tag_types names = {0};
    assert_true(tag_types_add(&names, "b", 1) == 0 && tag_types_add(&names, "a", 1) == 1);
    for (int round = 0; round < 5000; round++) {
        tag_mark m[WORDS];
        tag_span got[WORDS], want[WORDS];
        const int words = 1 + draw(&r, 12);
        for (int i = 0; i < words; i++) {
            m[i] = (tag_mark){(tag_part)draw(&r, TAG_PARTS), draw(&r, 2)};
            if (m[i].part == TAG_OUTSIDE) m[i].type = -1;
        }
        const int n = scan(m, words, want);
        assert_int_equal(mark_spans(&names, m, words, got), n);
        assert_memory_equal(got, want, (size_t)n * sizeof *got);
    }
    tag_types_free(&names);
}

/* -- grammars and dictionaries */

static tag_types two_types(void) {
    tag_types t = {0};
    assert_int_equal(tag_types_add(&t, "PER", 3), 0);
    assert_int_equal(tag_types_add(&t, "LOCATION", 3), 1);
    assert_int_equal(tag_types_add(&t, "PERSON", 3), 0);
    t.trained = 2;
    return t;
}

static bool path_allowed(const tag_set *s, const int32_t *id, int words) {
    const int32_t n = s->count;
    bool fine = s->allowed[n * (n + 2) + id[0]] && s->allowed[id[words - 1] * (n + 2) + n + 1];
    for (int i = 1; i < words; i++) fine = fine && s->allowed[id[i - 1] * (n + 2) + id[i]];
    return fine;
}

/* A sequence is legal when its entities, written in its scheme, are that sequence. */
static void grammar_allows_what_is_written(void **state) {
    (void)state;
    enum { LONG = 4 };
    tag_types t = two_types();
    for (int scheme = 0; scheme < TAG_SCHEMES; scheme++) {
        tag_set *s = tag_set_create((tag_scheme)scheme, &t, NULL);
        assert_non_null(s);
        int paths = 1, legal = 0;
        for (int i = 0; i < LONG; i++) paths *= s->count;
        for (int path = 0; path < paths; path++) {
            int32_t id[LONG];
            tag_mark m[LONG], written[LONG];
            bool same = true;
            for (int i = 0, rest = path; i < LONG; rest /= s->count, i++) {
                id[i] = rest % s->count;
                m[i] = s->mark[id[i]];
            }
            tag_convert((tag_scheme)scheme, m, LONG, written);
            for (int i = 0; i < LONG; i++) same = same && written[i].part == m[i].part;
            assert_int_equal(path_allowed(s, id, LONG), same);
            legal += same;
        }
        assert_true(legal > 0 && (legal < paths));
        tag_set_free(s);
    }
    tag_types_free(&t);
}

static void dictionary_of_tags(void **state) {
    (void)state;
    static const char *const names[] = {"O",     "B-LOC", "I-LOC", "E-LOC", "S-LOC",
                                        "B-PER", "I-PER", "E-PER", "S-PER"};
    tag_types t = two_types();
    int32_t number[2];
    tag_set *s = tag_set_create(TAG_BIOES, &t, number);
    assert_int_equal(s->count, 9);
    assert_int_equal(number[0], 1);
    assert_int_equal(number[1], 0);
    for (int32_t i = 0; i < 9; i++) {
        assert_string_equal(s->name[i], names[i]);
        assert_int_equal(tag_set_id(s, s->mark[i]), i);
    }
    assert_int_equal(tag_set_id(s, (tag_mark){TAG_BEGIN, 2}), -1);
    /* every column of the start, every row of the end, and an empty sentence */
    for (int i = 0; i < 11; i++) assert_int_equal(s->allowed[i * 11 + 9], 0);
    for (int i = 0; i < 11; i++) assert_int_equal(s->allowed[10 * 11 + i], 0);
    assert_int_equal(s->allowed[9 * 11 + 10], 1);
    const int32_t id[] = {1, 3, 0, 8, 2, -1, 99, 5};
    const tag_span want[] = {{0, 0, 1}, {1, 3, 3}, {0, 4, 4}, {1, 7, 7}};
    tag_span got[8];
    assert_int_equal(tag_set_spans(s, id, 8, got), 4);
    assert_memory_equal(got, want, sizeof want);
    tag_set_free(s);
    /* a type that training lacks has no class, but its entities are known */
    assert_int_equal(tag_types_add(&t, "AAA", 3), 2);
    s = tag_set_create(TAG_BIOES, &t, NULL);
    assert_int_equal(s->count, 9);
    const int32_t other[] = {tag_set_id(s, (tag_mark){TAG_SINGLE, 2}), 1};
    assert_int_equal(other[0], 12);
    assert_int_equal(tag_set_spans(s, other, 2, got), 2);
    assert_int_equal(got[0].type, 2);
    assert_int_equal(tag_set_id(s, (tag_mark){TAG_BEGIN, 3}), -1);
    tag_set_free(s);
    s = tag_set_create(TAG_IOB1, &t, NULL);
    assert_int_equal(s->count, 5);
    assert_int_equal(tag_set_id(s, (tag_mark){TAG_END, 0}), -1);
    tag_set_free(s);
    tag_types_free(&t);
}

static void matching(void **state) {
    (void)state;
    const tag_span a[] = {{0, 0, 1}, {1, 3, 3}, {0, 4, 6}, {2, 8, 8}};
    const tag_span b[] = {{0, 0, 1}, {0, 2, 2}, {0, 3, 3}, {0, 4, 5}, {2, 8, 8}};
    assert_int_equal(tag_spans_matching(a, 4, b, 5), 2);
    assert_int_equal(tag_spans_matching(b, 5, a, 4), 2);
    assert_int_equal(tag_spans_matching(a, 4, a, 4), 4);
    assert_int_equal(tag_spans_matching(a, 4, b, 0), 0);
}

/* -- recognition and refusals: tags between blanks, "|" between sentences */

static sr_status read_column(tag_column *c, const char *text, sr_failure *why) {
    tag_types known = {0};
    tag_mark m;
    sr_status status = SR_OK;
    for (int line = 1; status == SR_OK && *text; line++) {
        const size_t length = strcspn(text, " ");
        if (*text == '|')
            tag_column_end_sentence(c);
        else
            status = tag_column_add(c, &known, line, text, length, &m, why);
        text += length + (text[length] == ' ');
    }
    tag_column_end_sentence(c);
    tag_types_free(&known);
    return status;
}

static void recognise(const char *text, tag_scheme want, int64_t illegal) {
    tag_column c = tag_column_start("f", TAG_ANY);
    sr_failure why = {0};
    check_ok(read_column(&c, text, &why), &why);
    assert_int_equal(tag_column_scheme(&c), want);
    assert_int_equal(c.illegal[want], illegal);
}

static void recognition(void **state) {
    (void)state;
    recognise("I-P I-P O | I-L B-L", TAG_IOB1, 0);
    recognise("I-P O I-L", TAG_IOB1, 0);
    recognise("B-P I-P O | B-L B-L", TAG_IOB2, 0);
    recognise("B-P O B-P", TAG_IOB2, 0);
    recognise("O O", TAG_IOB2, 0);
    recognise("B-P E-P O S-L", TAG_BIOES, 0);
    recognise("B-P M-P E-P S-L", TAG_BMES, 0);
    recognise("B-P M-P E-P W-L", TAG_BMEWO, 0);
    recognise("B-P I-P L-P U-L", TAG_BILOU, 0);
    recognise("B M E S", TAG_BMES, 0);
    recognise("B-P I-P | I-P O | B-P B-P I-P", TAG_IOB2,
              1); /* the tag that continues an entity after a break */
    recognise("B-P S-P | I-P O", TAG_BIOES, 3);
}

static void refuse(const char *text, int scheme, const char *part) {
    tag_column c = tag_column_start("f.txt", scheme);
    sr_failure why = {0};
    assert_int_equal(read_column(&c, text, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
}

static void refusals(void **state) {
    (void)state;
    char long_tag[400] = "O B-";
    memset(long_tag + 4, 'x', 300);
    refuse(
        "I-P B-P Q-P", TAG_ANY,
        "f.txt:3: tag 'Q-P' is of no scheme: iob2 (O B I), iob1 (O B I), bioes (O B I E S), bilou "
        "(O B I L U), '-', type");
    refuse("B-P M-P L-P", TAG_ANY, "f.txt:3: tag 'L-P' contradicts earlier tags: bmes");
    refuse("B-P E-P", TAG_IOB2, "f.txt:2: tag 'E-P' is not of iob2 (O B I)");
    refuse("O-P", TAG_ANY, "f.txt:1: tag 'O-P'");
    refuse("O PER", TAG_ANY, "f.txt:2: tag 'PER'");
    refuse("b-P", TAG_ANY, "f.txt:1: tag 'b-P'");
    refuse("-P", TAG_ANY, "f.txt:1: tag '-P'");
    refuse("B_P", TAG_ANY, "f.txt:1: tag 'B_P'");
    refuse(long_tag, TAG_ANY, "f.txt:2: tag 'B-xxx");
}

static void names(void **state) {
    (void)state;
    char words[128] = "";
    for (int s = 0; s < TAG_SCHEMES; s++) {
        assert_int_equal(tag_scheme_find(tag_scheme_name((tag_scheme)s)), s);
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", s ? "|" : "",
                 tag_scheme_name((tag_scheme)s));
    }
    assert_string_equal(words, TAG_SCHEME_WORDS);
    assert_int_equal(tag_scheme_find("any"), TAG_ANY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entities_of_every_scheme),
        cmocka_unit_test(entities_of_illegal_sequences),
        cmocka_unit_test(conversion),
        cmocka_unit_test(every_scheme_into_every_other),
        cmocka_unit_test(random_sequences),
        cmocka_unit_test(grammar_allows_what_is_written),
        cmocka_unit_test(dictionary_of_tags),
        cmocka_unit_test(matching),
        cmocka_unit_test(recognition),
        cmocka_unit_test(refusals),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
