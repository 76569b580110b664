#: title distance between batch and running statistics if the running average had another weight alpha
#: question running
#: runs 1- RUN.h5 [MORE.h5...]
#: samples cv_bn_every nlp_bn_random
#: size 6.75 2.4
#: controls x y scale steps
#: site *
#: stat mu
#: table d stat-alpha {run} --site {site} --stat {stat} --burn-in same --phase {steps} --alpha 0,0.5,0.7,0.8,0.9,0.95,0.97,0.98,0.99,0.995,0.998,0.999
#: curves d by site,statistic x alpha y median,q25,q75,run_alpha,steps,spacing
# Median distance with each alpha over that with alpha 0, which takes the batch before, against 1/(1 - alpha), all of them over the
# same steps: it omits alphas whose burn-in is longer than two thirds of the steps. Dashed: batches that are
# independent and about a fixed value, 1/sqrt(1 + alpha). Along it distance is noise of the batches, and more memory
# averages it out; above it the value moves and the running one lags behind. Vertical: the run's own alpha.
# --stat mu, sigma2 or psi2. A panel per run, a line per site; runs of one site each are together in one panel. Of few lines
# quartiles over steps.

if (strstrt(stat, ',')) { eval refuse('--stat is one of mu, sigma2, psi2') }
do for [k=1:d_curves] { d_key[k] = d_key[k][1:strlen(d_key[k]) - strlen(' dist_'.stat)] }
together = runs > 1 && d_curves == runs
memory(a) = 1.0 / (1 - a)
array base[d_curves]
array own[d_curves]
array bars[d_curves]
array own_low[runs]
array own_high[runs]
do for [r=1:runs] {
    own_low[r] = 2
    own_high[r] = -1
}
eval SITE_LOOKS
compared = 0
low = 1.0
high = 1.0
memory_high = 2.0
WIDEN = 'if (span_count > 0) { low = span_low < low ? span_low : low; high = span_high > high ? span_high : high }'
relative(c, k) = sprintf('(column(%s) / %.15g)', c, base[k])
do for [k=1:d_curves] {
    r = d_run[k]
    block = sprintf('d index %d', k - 1)
    bars[k] = together ? runs <= 4 : sites_of[r] <= 2
    eval span_of(block, 'd_median', '(column(d_x) == 0 ? column(d_median) : NaN)')
    base[k] = span_count > 0 ? span_low : 0
    eval span(block, 'd_spacing')
    every = span_count > 0 ? span_high : 1
    eval span(block, 'd_run_alpha')
    own[k] = span_count > 0 && span_high < 1 ? memory(span_high**every) : NaN
    if (span_count > 0) {
        own_low[r] = span_low < own_low[r] ? span_low : own_low[r]
        own_high[r] = span_high > own_high[r] ? span_high : own_high[r]
    }
    eval span(block, 'd_steps')
    alphas = own_high[r] < 0 ? '' : own_low[r] < own_high[r] ? sprintf('α %g to %g, ', own_low[r], own_high[r]) : sprintf('α %g, ', own_low[r])
    run_below[r] = alphas.sprintf('%d steps', span_high).(every > 1 ? sprintf(', vectors every %.3g', every) : '')
    if (base[k] > 0) {
        if (own[k] > memory_high) { memory_high = own[k] }
        eval span_of(block, 'd_median', 'memory(column(d_x))')
        if (span_high > memory_high) { memory_high = span_high }
        compared = compared || span_count > 1
        eval span_of(block, 'd_median', relative('d_median', k))
        eval WIDEN
        if (bars[k]) {
            eval span_of(block, 'd_q25', relative('d_q25', k))
            eval WIDEN
            eval span_of(block, 'd_q75', relative('d_q75', k))
            eval WIDEN
        }
    }
}
if (!compared) { eval refuse('no two alphas to compare: too few recorded steps, or no distance of '.stat.' above 0') }
low = low < sqrt(0.5) ? low : sqrt(0.5)

set linetype 990 linecolor rgb '#202020' linewidth 0.7 dashtype (6,3)
set linetype 991 linecolor rgb '#909090' linewidth 0.5 dashtype solid
if (together) {
    do for [r=1:runs] {
        legend_text[r] = run_label[r].' ('.run_below[r].')'
        legend_type[r] = r
        legend_mark[r] = 2
    }
    legend_count = runs
}
legend_text[legend_count + 1] = 'noise alone: independent batches'
legend_type[legend_count + 1] = 990
legend_text[legend_count + 2] = 'vertical: α of the run'
legend_type[legend_count + 2] = 991
legend_count = legend_count + 2
any_bars = 0
do for [k=1:d_curves] { any_bars = any_bars || bars[k] }
if (any_bars) {
    legend_count = legend_count + 1
    legend_text[legend_count] = 'bar: quartiles over the steps'
    legend_type[legend_count] = 991
}
eval LEGEND_ROOM
pad_left = 0.85
pad_right = sites_named || together ? 0.16 : 0.85
gap_x = 0.5
cells = together ? 1 : runs
eval RUN_PANELS
if (together) { legend_height = legend_height - 0.12 * title_lines }
set pointsize 0.4
x_low = x_given ? x_from : 0.85
x_high = x_given ? x_to : 1.2 * memory_high
if (x_low <= 0) { eval refuse('--xrange: the axis of 1/(1 - alpha) is logarithmic and begins above 0') }
X_AXIS = sprintf('set logscale x 10; set xrange [%.15g:%.15g] noextend; ', x_low, x_high).log_tics('x', x_low, x_high)
noise(m) = m >= 1 ? 1 / sqrt(2 - 1 / m) : NaN
# Bars beside each other.
place(k) = bars[k] ? 1.03**(together ? d_run[k] - 0.5 * (runs + 1) : tone[k]) : 1
set samples 400

set multiplot
do for [i=1:cells] {
    eval cell_panel(i)
    eval X_AXIS
    eval log_y(low, high)
    set title (together ? '' : run_title(i))
    set xlabel (i + cell_columns > cells ? 'memory 1/(1 − α)'.(panel_width(cell_columns) > 1.8 ? ', recorded steps' : '').(panel_width(cell_columns) > 2.5 ? ' (10: α 0.9)' : '') : '') offset 0,0.7
    set ylabel (cell_column(i) == 1 ? stat_name('dist_'.stat).",\nin units of that at α 0" : '') offset -0.8,0
    if (i == 1 && !sites_named && !together) { eval SITE_COLOURS }
    unset arrow
    command = NO_PLOT
    do for [k=1:d_curves] {
        if ((together || d_run[k] == i) && base[k] > 0) {
            if (own[k] >= x_low && own[k] <= x_high) { set arrow k from own[k], graph 0 to own[k], graph 1 nohead back linetype 991 }
            x = sprintf('(%.15g * memory(column(d_x)))', place(k))
            if (bars[k]) {
                y = sprintf('%s:%s:%s', relative('d_median', k), relative('d_q25', k), relative('d_q75', k))
                command = command.(together ? sprintf(', d index %d using %s:%s with yerrorbars linetype %d', k - 1, x, y, d_run[k]) : site_plot(k, x, y, 'yerrorbars')).' linewidth 0.4 dashtype solid pointsize 0'
            }
            command = command.(together ? sprintf(', d index %d using %s:%s with linespoints linetype %d', k - 1, x, relative('d_median', k), d_run[k]) : site_plot(k, x, relative('d_median', k), 'linespoints'))
        }
    }
    eval 'plot '.command.', noise(x) with lines linetype 990'
    unset colorbox
}
eval LEGEND_DRAW
unset multiplot
