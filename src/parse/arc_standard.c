/* arc_standard.c -- states and transitions of the arc-standard parser. Sources: Nivre,
 * Incrementality in deterministic dependency parsing, 2004; Chen and Manning, A fast and accurate
 * dependency parser using neural networks, 2014; docs/models.md 8.
 *
 * A word gets its left dependents from the nearest to the farthest, its right ones likewise. The
 * newest is the outermost, so two numbers per side are enough.
 */
#include "parse/arc_standard.h"

#include <stdlib.h>

enum { ARRAYS = 8 };

bool arc_begin(arc_state *s, int32_t words, bool one_root) {
    if (words >= s->room) {
        const size_t room = (size_t)(words + 1) + (size_t)(words + 1) / 2;
        int32_t *block = malloc(room * ARRAYS * sizeof *block);
        if (!block) return false;
        free(s->stack);
        int32_t **array[ARRAYS] = {&s->stack,     &s->head,  &s->label,      &s->left,
                                   &s->left_next, &s->right, &s->right_next, &s->waiting};
        for (size_t i = 0; i < ARRAYS; i++) *array[i] = block + i * room;
        s->room = (int32_t)room;
    }
    s->words = words;
    s->front = 1;
    s->depth = 1;
    s->one_root = one_root;
    s->stack[0] = 0;
    for (int32_t i = 0; i <= words; i++)
        s->head[i] = s->label[i] = s->left[i] = s->left_next[i] = s->right[i] = s->right_next[i] =
            ARC_NONE;
    return true;
}

void arc_free(arc_state *s) {
    free(s->stack); /* one block for all arrays */
    *s = (arc_state){0};
}

static int32_t on_stack(const arc_state *s, int32_t from_top) {
    return from_top < s->depth ? s->stack[s->depth - 1 - from_top] : ARC_NONE;
}

bool arc_done(const arc_state *s) {
    return s->depth == 1 && s->front > s->words;
}

bool arc_legal(const arc_state *s, arc_kind kind) {
    if (kind == ARC_SHIFT) return s->front <= s->words;
    if (s->depth < 2) return false;
    const bool of_root = s->depth == 2;
    if (kind == ARC_LEFT) return !of_root;
    return !of_root || !s->one_root || s->front > s->words;
}

void arc_apply(arc_state *s, arc_kind kind, int32_t label) {
    if (kind == ARC_SHIFT) {
        s->stack[s->depth++] = s->front++;
        return;
    }
    const int32_t top = on_stack(s, 0), second = on_stack(s, 1);
    const int32_t head = kind == ARC_LEFT ? top : second, child = kind == ARC_LEFT ? second : top;
    int32_t *outermost = kind == ARC_LEFT ? s->left : s->right;
    int32_t *next = kind == ARC_LEFT ? s->left_next : s->right_next;
    s->head[child] = head;
    s->label[child] = label;
    next[head] = outermost[head];
    outermost[head] = child;
    s->depth--;
    s->stack[s->depth - 1] = head;
}

static int32_t of(const int32_t *children, int32_t node) {
    return node == ARC_NONE ? ARC_NONE : children[node];
}

static void places_below(const arc_state *s, int32_t node, int32_t place[ARC_CHILDREN / 2]) {
    place[0] = of(s->left, node);
    place[1] = of(s->right, node);
    place[2] = of(s->left_next, node);
    place[3] = of(s->right_next, node);
    place[4] = of(s->left, place[0]);
    place[5] = of(s->right, place[1]);
}

void arc_places(const arc_state *s, int32_t node[ARC_PLACES]) {
    for (int32_t i = 0; i < 3; i++) node[i] = on_stack(s, i);
    for (int32_t i = 0; i < 3; i++)
        node[3 + i] = i <= s->words - s->front ? s->front + i : ARC_NONE;
    places_below(s, node[0], node + 6);
    places_below(s, node[1], node + 12);
}

int32_t arc_class(arc_kind kind, int32_t label, int32_t labels) {
    return kind == ARC_SHIFT ? 0 : 1 + (kind == ARC_RIGHT ? labels : 0) + label;
}

arc_kind arc_kind_of(int32_t class, int32_t labels, int32_t *label) {
    *label = class == 0 ? ARC_NONE : (class - 1) % labels;
    return class == 0 ? ARC_SHIFT : class <= labels ? ARC_LEFT : ARC_RIGHT;
}
