/* static_oracle.c -- the transitions that build a given tree (docs/models.md 8), in this order:
 *
 *   LEFT   if head(second) = top and second has all its dependents
 *   RIGHT  if head(top) = second and top has all its dependents
 *   SHIFT  else; with an empty buffer the tree is not projective
 */
#include "parse/arc_standard.h"

bool arc_oracle_begin(arc_state *s, const int32_t *head, int32_t words) {
    if (!arc_begin(s, words, false)) return false;
    for (int32_t i = 0; i <= words; i++) s->waiting[i] = 0;
    for (int32_t i = 0; i < words; i++) s->waiting[head[i]]++;
    return true;
}

int arc_oracle(const arc_state *s, const int32_t *head) {
    if (s->depth >= 2) {
        const int32_t top = s->stack[s->depth - 1], second = s->stack[s->depth - 2];
        if (second != 0 && head[second - 1] == top && s->waiting[second] == 0) return ARC_LEFT;
        if (head[top - 1] == second && s->waiting[top] == 0) return ARC_RIGHT;
    }
    return s->front <= s->words ? ARC_SHIFT : -1;
}

void arc_oracle_apply(arc_state *s, arc_kind kind, int32_t label) {
    arc_apply(s, kind, label);
    if (kind != ARC_SHIFT) s->waiting[s->stack[s->depth - 1]]--;
}

int64_t arc_oracle_run(arc_state *s, const int32_t *head, int32_t words, uint8_t *kind) {
    if (!arc_oracle_begin(s, head, words)) return -1;
    int64_t count = 0;
    while (!arc_done(s)) {
        const int said = arc_oracle(s, head);
        if (said < 0) break;
        if (kind) kind[count] = (uint8_t)said;
        arc_oracle_apply(s, (arc_kind)said, 0);
        count++;
    }
    return count;
}
