#: title AdaNorm Theorem 1 on one network: variance of the gradient behind a normalization, and what bounds it
#: question gradient
#: runs 1-4 RUN.h5 [MORE.h5...]
#: samples nlp_ln_simple
#: size 6.75 2.3
#: controls smooth steps
#: site first
#: table t stat-lngrad {run} --per-step --buckets {buckets} --phase {steps} --site {site} --stat g_var,free_var,grad_var,exact_var
#: curves t by site x percent y row_g_var,row_free_var,row_grad_var,row_exact_var buckets 100
#: table g stat-lngrad {run}
# Over the features of a row, averaged over rows: D_g, variance of g, the gradient at the normalized vector; D_g/s^2, the
# variance that dx would have if mean and deviation of the row were constants; the variance of dx. The theorem states
# that the third is at most the second, at the same g, x and s: of one network. Every further run has panels and
# axes of its own. Left: through training at one site, medians of each 1/100; right: the third over the second at
# every site, their medians over the steps (files recorded before row_free_var lack both). Ring: by the closed form.

legend_count = 4
legend_text[1] = 'D_g, variance of g'
legend_text[2] = t_row_free_var_finite > 0 ? 'D_g / s²' : 'D_g / s²: not recorded'
legend_text[3] = 'variance of dx'
legend_text[4] = 'variance of dx by the closed form'
array kind[4] = [958, 952, 951, published_type(1)]
do for [q=1:4] {
    legend_type[q] = kind[q]
    legend_mark[q] = q == 4 ? 1 : 2
}
array name_of[4] = ['g_g_var', 'g_free_var', 'g_grad_var', 'g_exact_var']
array step_name[4] = ['t_row_g_var', 't_row_free_var', 't_row_grad_var', 't_row_exact_var']
figure_height = grow((figure_height - head_height - note_height) * runs + head_height + note_height)
eval LEGEND_ROOM
legend_height = legend_height + (runs > 1 ? 0.16 : 0.05)
gap_y = runs > 1 ? 0.62 : gap_y
pad_left = 0.72
gap_x = 0.85
# Where two panels do not fit side by side, one comes below the other.
below = narrow(2, 1.1)
if (below) {
    gap_y = 0.5
    figure_height = grow(figure_height + runs * (panel_height(runs) + gap_y))
    eval terminal(figure_height)
}
# Of medians over the steps.
share(c) = column(c) / column(g_free_var)
array deepest[runs]
array shallowest[runs]
array first_of[runs]
do for [k=t_curves:1:-1] { first_of[t_run[k]] = k }
do for [r=1:runs] {
    eval span_of(sprintf('g index %d', r - 1), 'g_grad_var', 'column(0)')
    if (span_count == 0) { eval refuse('no finite gradient of a row') }
    eval span(sprintf('g index %d', r - 1), 'g_depth')
    shallowest[r] = span_low
    deepest[r] = span_high
}
set pointsize 0.45

set multiplot
do for [r=1:runs] {
    do for [side=1:2] {
        low = 1e300
        high = -1e300
        command = ''
        set xrange [*:*]
        set yrange [*:*]
        unset logscale
        do for [k=1:t_curves] {
            do for [q=1:4] {
                if (side == 1 && t_run[k] == r) {
                    eval span(sprintf('t index %d', k - 1), step_name[q])
                    if (span_count > 0 && span_low > 0) {
                        low = span_low < low ? span_low : low
                        high = span_high > high ? span_high : high
                        command = command.sprintf(', t index %d using t_x:%s with ', k - 1, step_name[q]). \
                            (q == 4 ? sprintf('points linetype %d pointsize 0.5 pointinterval 8', kind[q]) : sprintf('lines linetype %d', kind[q]))
                    }
                }
            }
        }
        eval span(sprintf('g index %d', r - 1), 'g_free_var')
        if (side == 2 && span_count > 0) {
            do for [q=3:4] {
                eval span_of(sprintf('g index %d', r - 1), name_of[q], sprintf('share(%s)', name_of[q]))
                if (span_count > 0) {
                    low = span_low < low ? span_low : low
                    high = span_high > high ? span_high : high
                    command = command.sprintf(', g index %d using g_depth:(share(%s)) with points linetype %d pointsize %g', r - 1, name_of[q], kind[q], q == 4 ? 0.9 : 0.5)
                }
            }
        }
        if (strlen(command) > 0) {
            if (below) { eval panel(1, 1, 2 * (r - 1) + side, 2 * runs) } else { eval panel(side, 2, r, runs) }
            if (side == 1) {
                eval log_y(low, high)
            } else {
                eval linear_y(low < 0.9 ? low : 0.9, high > 1 ? high : 1)
                command = command.', 1 with lines linetype 952'
            }
            set ylabel (side == 1 ? 'variance, '.t_key[first_of[r]] : 'variance of dx / (D_g / s²)') noenhanced offset 0.4,0
            set title (side == 1 && runs > 1 ? run_label[r] : '') noenhanced offset 0,-0.8
            set xlabel (side == 1 ? 'training (%)' : 'depth of the site, from the input') offset 0,0.7
            if (side == 1) {
                eval percent_x(25)
            } else {
                set xrange [shallowest[r] - 0.6:deepest[r] + 0.6] noextend
                eval depth_tics(deepest[r] - shallowest[r], 8)
            }
            eval 'plot '.command[3:*]
        }
    }
}
unset title
eval LEGEND_DRAW
unset multiplot
