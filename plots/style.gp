# Shared look of the figures: sizes of paper columns, 8 point text, colours that colour-blind readers
# tell apart (Wong, Nature Methods 2011), one dash pattern per colour for print in grey.
# statplot has set: figure_width, figure_height (inches), runs, run_label[], run_full[], shared.

set encoding utf8
set datafile separator tab

set linetype 1 lc rgb '#0072B2' lw 0.9 dt solid      pt 7
set linetype 2 lc rgb '#D55E00' lw 0.9 dt (9,2)      pt 5
set linetype 3 lc rgb '#009E73' lw 0.9 dt (3,2)      pt 9
set linetype 4 lc rgb '#CC79A7' lw 0.9 dt (9,2,2,2)  pt 11
set linetype 5 lc rgb '#56B4E9' lw 0.9 dt (5,2)      pt 13
set linetype 6 lc rgb '#E69F00' lw 0.9 dt (5,2,2,2)  pt 6
set linetype 7 lc rgb '#000000' lw 0.9 dt (2,4)      pt 4
set linetype 8 lc rgb '#999999' lw 0.9 dt (14,3)     pt 8
set linetype cycle 8
set pointsize 0.3

set border 3 lc rgb '#404040' lw 0.5
set tics out nomirror scale 0.5,0.25 textcolor rgb '#202020'
set grid ytics lc rgb '#D8D8D8' lw 0.4 dt solid
set xtics offset 0,0.35
unset key

# -- panels ------------------------------------------------------------------------------------
# eval panel(column, columns, row, rows) puts the next plot there; all lengths in inches.
pad_left = 0.62
pad_right = 0.16
pad_bottom = 0.36
gap_x = 0.72
gap_y = 0.46
legend_height = 0.06
panel_width(n) = (figure_width - pad_left - pad_right - (n - 1) * gap_x) / n
panel_height(n) = (figure_height - legend_height - pad_bottom - (n - 1) * gap_y) / n
panel_left(i, n) = pad_left + (i - 1) * (panel_width(n) + gap_x)
panel_bottom(i, n) = pad_bottom + (n - i) * (panel_height(n) + gap_y)
panel(c, cs, r, rs) = sprintf('set lmargin at screen %.5f; set rmargin at screen %.5f; '. \
    'set bmargin at screen %.5f; set tmargin at screen %.5f', \
    panel_left(c, cs) / figure_width, (panel_left(c, cs) + panel_width(cs)) / figure_width, \
    panel_bottom(r, rs) / figure_height, (panel_bottom(r, rs) + panel_height(rs)) / figure_height)

# -- legend ------------------------------------------------------------------------------------
# Above the panels, never over data, as many columns as fit. Fill legend_text[i] and legend_type[i]
# (linetype) for i = 1 .. legend_count; eval LEGEND_ROOM before the first panel, eval LEGEND_DRAW after the
# last. (A key of gnuplot's own warns when a label is long, and statplot takes warnings for failures.)
array legend_text[64]
array legend_type[64]
legend_count = 0
legend_letter = 0.066
legend_line = 0.3
legend_most = int((figure_width - 0.75) / legend_letter)
legend_cut(text) = strlen(text) > legend_most ? text[1:legend_most-1].'…' : text
legend_x(i) = (0.08 + ((i - 1) % legend_columns) * legend_pitch) / figure_width
legend_y(i) = 1 - (0.1 + 0.15 * int((i - 1) / legend_columns)) / figure_height
LEGEND_ROOM = 'legend_longest = 1; '. \
    'do for [i=1:legend_count] { if (strlen(legend_text[i]) > legend_longest) { legend_longest = strlen(legend_text[i]) } }; '. \
    'if (legend_longest > legend_most) { legend_longest = legend_most }; '. \
    'legend_pitch = legend_letter * legend_longest + legend_line + 0.25; '. \
    'legend_columns = int((figure_width - 0.08) / legend_pitch); '. \
    'if (legend_columns < 1) { legend_columns = 1 }; '. \
    'legend_height = 0.12 + 0.15 * ceil(1.0 * legend_count / legend_columns)'
LEGEND_DRAW = 'set lmargin at screen 0; set rmargin at screen 1; set bmargin at screen 0; '. \
    'set tmargin at screen 1; unset border; unset tics; unset xlabel; unset ylabel; unset title; unset grid; '. \
    'unset logscale; unset label; unset arrow; unset object; unset colorbox; set xrange [0:1]; set yrange [0:1]; '. \
    'do for [i=1:legend_count] { '. \
    'set arrow from screen legend_x(i), screen legend_y(i) to screen (legend_x(i) + legend_line / figure_width), screen legend_y(i) nohead linetype legend_type[i]; '. \
    'set label legend_cut(legend_text[i]) at screen (legend_x(i) + (legend_line + 0.06) / figure_width), screen legend_y(i) left noenhanced textcolor rgb "#202020" }; '. \
    'plot NaN notitle; unset arrow; unset label'
