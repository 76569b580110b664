#: title batch against running statistics, feature by feature: quantiles over the steps
#: question running
#: runs 1- RUN.h5 [MORE.h5...]
#: samples nlp_bn_bucketed nlp_bn_random
#: size 6.75 2.5
#: controls y steps
#: site first
#: table q stat-features {run} --quantiles --site {site} --phase {steps} --stat mu_shift,sigma_ratio,psi_ratio
#: table? w stat-features {runs} --histogram 1 --site {site} --stat mu_shift,sigma_ratio,psi_ratio
#: curves q by statistic,site x percent y q05,q25,median,q75,q95,noise buckets 4000
# Table w is for its warnings on what may not be compared. Left: (mu_B - mu)/sqrt(sigma2 + eps), right: sqrt((sigma2_B + eps)/(sigma2 + eps)), of psi2 where a method divides by psi: how far
# an output of inference is from that of training. Each feature at its place in the order of the medians: the line is the median over
# the steps, the dark band holds half of them, the light one 90 %. Dotted: 90 % of steps if rows were independent and normal. A
# median far from 0 (1) is a running value that is wrong; a wide band are batches that differ.

statistic_of(k) = word(q_key[k], 1)
site_of(k) = q_key[k][strlen(statistic_of(k))+2:*]
same_site(k, m) = q_run[k] == q_run[m] && site_of(k) eq site_of(m)
# 1: left, 2: right, 0: psi beside sigma at the same site.
array side[q_curves]
array look[q_curves]
array sigma_there[q_curves]
do for [k=1:q_curves] {
    sigma_there[k] = 0
    do for [m=1:q_curves] {
        if (same_site(k, m) && statistic_of(m) eq 'sigma_ratio') { sigma_there[k] = 1 }
    }
    side[k] = statistic_of(k) eq 'mu_shift' ? 1 : statistic_of(k) eq 'sigma_ratio' || !sigma_there[k] ? 2 : 0
}
psi_only = 1
shifts = 0
do for [k=1:q_curves] {
    if (side[k] == 2 && statistic_of(k) eq 'sigma_ratio') { psi_only = 0 }
    if (side[k] == 1) { shifts = shifts + 1 }
    look[k] = 0
    do for [m=1:k-1] { if (same_site(k, m)) { look[k] = look[m] } }
    if (look[k] == 0) {
        legend_count = legend_count + 1
        legend_text[legend_count] = (runs > 1 ? run_label[q_run[k]].' (' : '').site_of(k).(runs > 1 ? ')' : '')
        legend_type[legend_count] = legend_count
        look[k] = legend_count
    }
}
if (legend_count > 24) { eval refuse(sprintf('%d sites are more than 24: choose with --site', legend_count)) }
looks = legend_count
eval span('q', 'q_noise')
if (span_count > 0) {
    legend_count = legend_count + 1
    legend_text[legend_count] = 'dotted: 90 % of independent rows'
    legend_type[legend_count] = 990
}
set linetype 990 linecolor rgb '#202020' linewidth 0.9 dashtype (1.5,2.5)
eval NOTE('Line: median over the steps. Dark band: half of the steps; light band: 90 % of them.'.(looks > 1 ? ' Dotted lines have the colour of their curve.' : ''))
eval LEGEND_ROOM
pad_left = 0.68
gap_x = 0.82
panels = shifts > 0 ? 2 : 1
# One column of a paper has room for one panel beside another's place: below it.
columns = panels == 2 && figure_width >= 4.5 ? 2 : 1
rows = panels / columns
gap_y = 0.2
if (rows == 2) { figure_height = grow(figure_height + 1.3); eval terminal(figure_height) }
NOISE_90 = 1.6448536269514722
array low[2] = [0.0, 1.0]
array high[2] = [0.0, 1.0]
do for [k=1:q_curves] {
    if (side[k] > 0) {
        block = sprintf('q index %d', k - 1)
        eval span(block, 'q_q05')
        low[side[k]] = span_count > 0 && span_low < low[side[k]] ? span_low : low[side[k]]
        eval span(block, 'q_q95')
        high[side[k]] = span_count > 0 && span_high > high[side[k]] ? span_high : high[side[k]]
    }
}

set xrange [0:100] noextend
set xtics 25
set multiplot
do for [s=3-panels:2] {
    place = s - 2 + panels
    eval panel(rows == 2 ? 1 : place, columns, rows == 2 ? place : 1, rows)
    set xlabel (place < rows ? '' : 'features, in the order of their medians (%)') offset 0,0.7
    set format x (place < rows ? '' : '% h')
    eval linear_y(low[s], high[s])
    set ylabel (s == 1 ? '({/:Italic μ_B} − {/:Italic μ}) / {/:Italic σ}' : psi_only ? '{/:Italic ψ_B} / {/:Italic ψ}' : '{/:Italic σ_B} / {/:Italic σ}') offset 0.2,0
    bands = ''
    lines = ''
    do for [k=1:q_curves] {
        if (side[k] == s) {
            bands = bands.sprintf('q index %d using q_x:q_q05:q_q95 with filledcurves linetype %d fillstyle transparent solid 0.15 noborder, ', k - 1, look[k]). \
                sprintf('q index %d using q_x:q_q25:q_q75 with filledcurves linetype %d fillstyle transparent solid 0.3 noborder, ', k - 1, look[k])
            lines = lines.sprintf(', q index %d using q_x:q_median with lines linetype %d', k - 1, look[k])
            do for [sign=-1:1:2] {
                lines = lines.sprintf(', q index %d using q_x:(%d + %d * NOISE_90 * cell(q_noise)) with lines linetype %d linewidth 0.9 dashtype (1.5,2.5)', k - 1, s - 1, sign, look[k])
            }
        }
    }
    eval 'plot '.bands.sprintf('%d with lines linetype 958 linewidth 0.5 dashtype solid', s - 1).lines
}
eval LEGEND_DRAW
unset multiplot
