/* harm_ranges.h -- placeholder
 */
#define HARM_RANGES(X)
