#: title Regularized BN: condition numbers of every site's input and of its gradient
#: question features
#: runs 1- LN.h5 BN.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn nlp_rbn
#: size 6.75 3.6
#: tasks one
#: controls scale
#: site *
#: table c stat-condition {run} --steps last --p 0.2,0.5,0.8 --site {site}
# A line per run, at the last step with spectra (statrec train --spectra-every). C_max: largest singular value of the
# tensor X [N, d]; C_p: that divided by the singular value number ceil(p d). Upper row: X the input of the
# normalization; lower row: X the gradient of the loss with respect to it. C_max grows with the root of N, so the
# legend says N, from the smallest to the largest of the sites where they differ; C_p does not.

legend_count = runs
do for [r=1:runs] {
    eval span(sprintf('c index %d', r - 1), 'c_N')
    legend_text[r] = run_label[r].(span_count == 0 ? '' : span_low == span_high ? sprintf(', N %d', span_low) : \
        sprintf(', N %d to %d', span_low, span_high))
    legend_type[r] = r
    legend_mark[r] = 2
}
eval LEFT_OUT('c')
eval LEGEND_ROOM
legend_height = legend_height + 0.14
pad_left = 0.85
gap_x = 0.42
gap_y = 0.3
eval GRID(4, 2)
array part[4] = [0, 0.2, 0.5, 0.8]
array heading[4] = ['{/:Italic C}_{max}', '{/:Italic C}_{0.2}', '{/:Italic C}_{0.5}', '{/:Italic C}_{0.8}']
array tensor[2] = ['input', 'gradient']
# The value in its panel, NaN elsewhere; C_max has no p.
number(i, q) = strcol(c_tensor) eq tensor[i] && (q == 1 ? strcol(c_statistic) eq 'C_max' : abs(column(c_p) - part[q]) < 1e-9) ? \
    column(c_value) : NaN
stats c using c_depth nooutput name 'SITE'
array low[8]
array high[8]
array points[8*runs]
drawn = 0
do for [i=1:2] {
    do for [q=1:4] {
        low[4*i-4+q] = 1e300
        high[4*i-4+q] = 0
        do for [r=1:runs] {
            eval span_of(sprintf('c index %d', r - 1), 'c_value', 'number(i, q)')
            points[8*r-12+4*i+q] = span_count
            drawn = drawn + span_count
            if (span_count > 0 && span_low > 0) {
                low[4*i-4+q] = span_low < low[4*i-4+q] ? span_low : low[4*i-4+q]
                high[4*i-4+q] = span_high > high[4*i-4+q] ? span_high : high[4*i-4+q]
            }
        }
        if (high[4*i-4+q] == 0) { low[4*i-4+q] = 1; high[4*i-4+q] = 1 }
    }
}
if (drawn == 0) { eval refuse('no finite condition number') }
set datafile missing NaN
set xrange [SITE_min - 0.5:SITE_max + 0.5] noextend
eval sprintf('set xtics %d', SITE_max - SITE_min < 6 ? 1 : tic_step(SITE_max - SITE_min, 5))
set pointsize 0.35
set title offset 0,-0.8

set multiplot
do for [i=1:2] {
    do for [q=1:4] {
        eval panel(q, 4, i, 2)
        eval log_y(low[4*i-4+q], high[4*i-4+q])
        set title (i == 1 ? heading[q] : '')
        set format x (i == 2 ? '%g' : '')
        set xlabel (i == 2 ? 'depth of the site' : '') offset 0,0.7
        set ylabel (begins_row(q, 4) ? 'of the '.tensor[i] : '') offset 0,0
        command = ''
        do for [r=1:runs] {
            if (points[8*r-12+4*i+q] > 0) { command = command.sprintf(', c index %d using c_depth:(number(i, q)) with linespoints linetype %d', r - 1, r) }
        }
        if (strlen(command) > 0) { eval 'plot '.command[3:*] }
    }
}
unset title
unset format
eval LEGEND_DRAW
unset multiplot
