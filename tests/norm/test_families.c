/* test_families.c -- consistency of each method's row in the table: family, axis, uses, vectors and
 * scalars. tests/observe/test_gradient_parts.c checks the formulas of the family. */
#include <string.h>

#include "norm/norm_options.h"
#include "norm/norm_site.h"
#include "testing/check.h"

#define BATCH   (NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B))
#define RUNNING (NORM_BIT(mu) | NORM_BIT(sigma2) | NORM_BIT(psi2))
#define SUMS    (NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx))
#define OF_PN   (NORM_BIT(nu) | NORM_BIT(Gamma_t) | NORM_BIT(Lambda_t))
#define CENTRED (NORM_BIT(mu) | NORM_BIT(sigma2))
#define PARTS   (NORM_SCALAR_BIT(g_mu) | NORM_SCALAR_BIT(g_sigma2) | NORM_SCALAR_BIT(g_psi2))

/* Vectors that each family's formulas read, and statistics that its methods use; 0: any. */
static const struct {
    uint32_t vectors, uses;
} of_family[] = {
    [NORM_FAMILY_NONE] = {0, 0},
    [NORM_FAMILY_SIGMA] = {NORM_BIT(sigma2_B) | SUMS, CENTRED},
    [NORM_FAMILY_PSI] = {NORM_BIT(psi2_B) | SUMS, NORM_BIT(psi2)},
    [NORM_FAMILY_PN] = {NORM_BIT(psi2_B) | NORM_BIT(psi2) | SUMS | OF_PN, NORM_BIT(psi2)},
    [NORM_FAMILY_ROW] = {0, 0},
    [NORM_FAMILY_OWN] = {BATCH | SUMS, 0},
};

static uint32_t parts_of(uint32_t uses) {
    return (uses & NORM_BIT(mu) ? NORM_SCALAR_BIT(g_mu) : 0) |
           (uses & NORM_BIT(sigma2) ? NORM_SCALAR_BIT(g_sigma2) : 0) |
           (uses & NORM_BIT(psi2) ? NORM_SCALAR_BIT(g_psi2) : 0);
}

/* Returns the contradiction in the row, or NULL. */
static const char *fault_of(const norm_method *m) {
    const norm_family f = m->family;
    const bool batch = !strcmp(m->axis, "batch"), own = f == NORM_FAMILY_OWN;
    const bool of_rows = !strcmp(m->axis, "row") || !strcmp(m->axis, "sample");
    if ((unsigned)f > NORM_FAMILY_OWN) return "family";
    if (f == NORM_FAMILY_NONE
            ? strcmp(m->axis, "-") != 0 || m->uses || m->vectors & ~NORM_BIT(gamma)
            : !batch && !of_rows)
        return "axis";
    if (batch != (f != NORM_FAMILY_NONE && f != NORM_FAMILY_ROW)) return "family over this axis";
    if ((m->uses & ~RUNNING) || (m->constants & ~m->uses)) return "uses";
    if (f != NORM_FAMILY_NONE && !m->uses) return "uses nothing";
    if (of_family[f].uses && m->uses != of_family[f].uses) return "uses of this family";
    if ((m->vectors & of_family[f].vectors) != of_family[f].vectors)
        return "vectors of this family";
    if (f != NORM_FAMILY_PN && !own && m->vectors & OF_PN) return "vectors of pn";
    if (!batch && m->vectors & (BATCH | RUNNING)) return "vectors of a batch";
    if (m->vectors & RUNNING & ~m->uses) return "a running value that it does not use";
    if ((m->scalars & PARTS) != (own ? parts_of(m->uses) : 0)) return "scalars of own formulas";
    return NULL;
}

static void every_row(void **state) {
    (void)state;
    for (int i = 0; norm_at(i); i++) {
        const char *fault = fault_of(norm_at(i));
        if (fault) fail_msg("%s: %s", norm_at(i)->name, fault);
    }
}

/* Rows with contradictions, each a changed copy of a valid one. */
static void expect_fault(const char *name, const char *fault, norm_method row) {
    row.name = name;
    const char *found = fault_of(&row);
    if (!found || strcmp(found, fault)) fail_msg("%s: '%s', not '%s'", name, found, fault);
}

static norm_method with(const char *name, norm_family family, uint32_t more, uint32_t less) {
    norm_method m = *norm_find(name);
    m.family = family;
    m.vectors = (m.vectors | more) & ~less;
    return m;
}

static void wrong_rows(void **state) {
    (void)state;
    expect_fault("pnv as bn", "uses of this family", with("pnv", NORM_FAMILY_SIGMA, 0, 0));
    expect_fault("pnv as pn", "vectors of this family", with("pnv", NORM_FAMILY_PN, 0, 0));
    expect_fault("pn as pnv", "vectors of pn", with("pn", NORM_FAMILY_PSI, 0, 0));
    expect_fault("bn as ln", "family over this axis", with("bn", NORM_FAMILY_ROW, 0, 0));
    expect_fault("bn as none", "axis", with("bn", NORM_FAMILY_NONE, 0, 0));
    expect_fault("ln as bn", "family over this axis", with("ln", NORM_FAMILY_SIGMA, 0, 0));
    expect_fault("bn alone", "scalars of own formulas", with("bn", NORM_FAMILY_OWN, 0, 0));
    expect_fault("no psi2_B", "vectors of this family",
                 with("pnv", NORM_FAMILY_PSI, 0, NORM_BIT(psi2_B)));
    expect_fault("no sums", "vectors of this family",
                 with("bn", NORM_FAMILY_SIGMA, 0, NORM_BIT(sum_gx)));
    expect_fault("two kinds", "a running value that it does not use",
                 with("pnv", NORM_FAMILY_PSI, NORM_BIT(sigma2), 0));
    expect_fault("ln of a batch", "vectors of a batch",
                 with("ln", NORM_FAMILY_ROW, NORM_BIT(mu_B), 0));
    norm_method m = with("pn-released", NORM_FAMILY_OWN, 0, 0);
    m.scalars &= ~NORM_SCALAR_BIT(g_psi2);
    expect_fault("no own g_psi2", "scalars of own formulas", m);
    m = with("bn", NORM_FAMILY_SIGMA, 0, 0);
    m.scalars |= NORM_SCALAR_BIT(g_mu);
    expect_fault("bn with g_mu", "scalars of own formulas", m);
    m = with("ln", NORM_FAMILY_ROW, 0, 0);
    m.constants = NORM_BIT(psi2);
    expect_fault("constants", "uses", m);
    m.constants = m.uses = 0;
    expect_fault("nothing", "uses nothing", m);
}

/* -- options --------------------------------------------------------------------------------- */

/* Exactly one option sets each parameter of each row, and its help names the method. */
static void every_parameter(void **state) {
    (void)state;
    int count = 0;
    while (norm_option_at(count)) count++;
    assert_true(count < NORM_OPTION_MAX); /* no option was left out */
    for (int i = 0; norm_at(i); i++)
        for (int k = 0; k < NORM_PARAM_MAX && norm_at(i)->param[k].name; k++) {
            const norm_method *m = norm_at(i);
            int setters = 0;
            for (int j = 0; j < count; j++) {
                if (norm_option_param(norm_option_at(j), m) != k) continue;
                setters++;
                if (!strstr(norm_option_at(j)->help, m->name) ||
                    !strstr(norm_option_at(j)->help, m->param[k].name))
                    fail_msg("--%s says '%s'", norm_option_at(j)->key, norm_option_at(j)->help);
            }
            if (setters != 1) fail_msg("%s of %s: %d options", m->param[k].name, m->name, setters);
        }
}

/* Names and order as in run files and .conf files. */
static void names_of_options(void **state) {
    (void)state;
    static const char *const key[] = {
        "pn-alpha-bkw",   "norm-warmup",    "norm-groups",    "norm-unbiased", "rbn-lambda-mean",
        "rbn-lambda-std", "rbn-running",    "rbn-scale",      "rbn-penalty",   "adanorm-c",
        "adanorm-k",      "norm-placement", "brn-r-max",      "brn-d-max",     "brn-r-calls",
        "brn-d-calls",    "mabn-buffer",    "mabn-clip-calls"};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        assert_string_equal(norm_option_at((int)i)->key, key[i]);
}

/* An option for one method does not set another method's parameter of the same name. */
static void options_of_methods(void **state) {
    (void)state;
    const norm_option *o = norm_option_at(0), *warmup = norm_option_at(1);
    const norm_method *pn = norm_find("pn"), *brn = norm_find("brn"), *mabn = norm_find("mabn");
    assert_int_equal(norm_option_param(o, pn), norm_param_find(pn, "alpha_bwd"));
    assert_int_equal(norm_option_param(o, brn), -1);
    assert_int_equal(norm_option_param(warmup, brn), norm_param_find(brn, "warmup"));
    assert_int_equal(norm_option_param(warmup, mabn), norm_param_find(mabn, "warmup"));
    assert_string_equal(warmup->help, "set warmup of brn, mabn, pn-released, un");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row), cmocka_unit_test(wrong_rows),
                                       cmocka_unit_test(every_parameter),
                                       cmocka_unit_test(names_of_options),
                                       cmocka_unit_test(options_of_methods)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
