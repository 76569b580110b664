/* arc_standard.h -- the arc-standard transition system (Nivre, 2004; docs/models.md 8) and its
 * static oracle. Features follow Chen and Manning (2014).
 *
 * Words of a sentence are 1 .. n, 0 is ROOT. The stack begins with ROOT, the buffer with all words:
 *
 *   SHIFT     the front of the buffer goes onto the stack
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

/* Begins as {0}; memory grows with the longest sentence. */
typedef struct arc_state {
    int32_t words;  /* n */
    int32_t front;  /* first word of the buffer; n + 1: it is empty */
    int32_t depth;  /* of the stack, ROOT included */
    bool one_root;  /* ROOT may get one dependent only, and that at the end */
    int32_t room;   /* nodes that the arrays [room] have room for */
    int32_t *stack; /* [depth] */
    /* [n + 1]: ARC_NONE where there is none yet */
    int32_t *head, *label;
    int32_t *left, *left_next;   /* leftmost and second leftmost child left of its head */
    int32_t *right, *right_next; /* rightmost and second rightmost right of it */
    int32_t *waiting;            /* [n + 1] of the oracle: dependents that a word has not got yet */
} arc_state;

/* A sentence of so many words; false when out of memory. */
bool arc_begin(arc_state *s, int32_t words, bool one_root);
void arc_free(arc_state *s);

bool arc_done(const arc_state *s);
bool arc_legal(const arc_state *s, arc_kind kind);
/* A legal one; label (of SHIFT: none) is kept for the new arc. */
void arc_apply(arc_state *s, arc_kind kind, int32_t label);

/* Nodes, 0 ROOT, ARC_NONE none: s1 s2 s3 b1 b2 b3 (top of the stack, front of the buffer), then for
 * s1 and for s2 leftmost, rightmost, second leftmost, second rightmost child, leftmost of the
 * leftmost, rightmost of the rightmost. The last ARC_CHILDREN of them are the children. */
void arc_places(const arc_state *s, int32_t node[ARC_PLACES]);

/* -- the static oracle of a tree, head [n] of the words 1 .. n: LEFT when the second of the stack
 * belongs to the top and has all of its dependents, else RIGHT when the top belongs to the second
 * and has all of its own, else SHIFT */

/* Begins a sentence to be led by the oracle; false when out of memory. */
bool arc_oracle_begin(arc_state *s, const int32_t *head, int32_t words);
/* -1: none, as the tree is not projective. */
int arc_oracle(const arc_state *s, const int32_t *head);
/* arc_apply of what the oracle said. */
void arc_oracle_apply(arc_state *s, arc_kind kind, int32_t label);
/* Writes the oracle's transitions to kind [2n], which may be NULL. Returns 2n, or fewer where the
 * tree is not projective. -1: out of memory. The state is used up. */
int64_t arc_oracle_run(arc_state *s, const int32_t *head, int32_t words, uint8_t *kind);

/* Classes of a parser with so many labels (unlabelled: 1): 0 SHIFT, 1 .. labels LEFT, then
 * RIGHT. */
int32_t arc_class(arc_kind kind, int32_t label, int32_t labels);
arc_kind arc_kind_of(int32_t class, int32_t labels, int32_t *label);

#endif
