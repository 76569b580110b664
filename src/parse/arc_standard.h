/* arc_standard.h -- the arc-standard transition system (Nivre, 2004; docs/models.md 8) and its
 * static oracle. Features follow Chen and Manning (2014).
 *
 * Words of a sentence are 1 .. n, 0 is ROOT. At first the stack has ROOT, the buffer all words:
 *
 *   SHIFT     moves the front of the buffer onto the stack
 *   LEFT(l)   the second of the stack becomes a dependent of its top and is removed; not ROOT
 *   RIGHT(l)  the top becomes a dependent of the second and is removed
 *
 * The end is an empty buffer and ROOT alone on the stack: exactly 2n transitions.
 */
#ifndef PARSE_ARC_STANDARD_H
#define PARSE_ARC_STANDARD_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { ARC_SHIFT, ARC_LEFT, ARC_RIGHT, ARC_KINDS } arc_kind;

enum { ARC_PLACES = 18, ARC_CHILDREN = 12, ARC_NONE = -1 };

/* Starts as {0}; memory grows with the longest sentence. */
typedef struct arc_state {
    int32_t words;  /* n */
    int32_t front;  /* first word of the buffer; n + 1: it is empty */
    int32_t depth;  /* depth of the stack, ROOT included */
    bool one_root;  /* ROOT gets exactly one dependent, at the end */
    int32_t room;   /* capacity of the arrays, in nodes */
    int32_t *stack; /* [depth] */
    /* [n + 1]: ARC_NONE: none yet */
    int32_t *head, *label;
    int32_t *left, *left_next;   /* leftmost and second leftmost child left of its head */
    int32_t *right, *right_next; /* rightmost and second rightmost right of it */
    int32_t *waiting;            /* [n + 1] of the oracle: missing dependents of a word */
} arc_state;

/* Starts a sentence of `words` words; false when out of memory. */
bool arc_begin(arc_state *s, int32_t words, bool one_root);
void arc_free(arc_state *s);

bool arc_done(const arc_state *s);
bool arc_legal(const arc_state *s, arc_kind kind);
/* Applies a legal transition; label: of the new arc, unless SHIFT. */
void arc_apply(arc_state *s, arc_kind kind, int32_t label);

/* Nodes, 0 ROOT, ARC_NONE none: s1 s2 s3 b1 b2 b3 (top of the stack, front of the buffer). Then for
 * s1 and for s2: leftmost, rightmost, second leftmost, second rightmost child, leftmost of the
 * leftmost, rightmost of the rightmost. The last ARC_CHILDREN nodes are the children. */
void arc_places(const arc_state *s, int32_t node[ARC_PLACES]);

/* -- the static oracle of a tree, head [n] of the words 1 .. n (static_oracle.c) */

/* Starts a sentence for the oracle; false when out of memory. */
bool arc_oracle_begin(arc_state *s, const int32_t *head, int32_t words);
/* The next transition; -1: none, the tree is not projective. */
int arc_oracle(const arc_state *s, const int32_t *head);
/* Applies the transition of the oracle. */
void arc_oracle_apply(arc_state *s, arc_kind kind, int32_t label);
/* Writes the oracle's transitions to kind [2n], which may be NULL. Returns 2n, or fewer if the tree
 * is not projective. -1: out of memory. Changes the state. */
int64_t arc_oracle_run(arc_state *s, const int32_t *head, int32_t words, uint8_t *kind);

/* Classes of a parser with `labels` labels (unlabelled: 1): 0 SHIFT, 1 .. labels LEFT, then
 * RIGHT. */
int32_t arc_class(arc_kind kind, int32_t label, int32_t labels);
arc_kind arc_kind_of(int32_t class, int32_t labels, int32_t *label);

#endif
