/* core/base/dmath.h - ln, exp, sin and cos in double, written out so that tables made at load have the same bits on
 * every machine and C library. Absolute error under 1e-15 in the stated ranges. [any]
 *
 * The sines' error grows to 2e-8 at 2^27, and from there as |x| does; |x| < 2^51 is defined. */
#ifndef KOPI_CORE_BASE_DMATH_H
#define KOPI_CORE_BASE_DMATH_H

double kopi__ln(double x);                               /* finite x > 0, normal */
double kopi__exp(double x);                              /* |x| <= 700 */
void kopi__sincos(double x, double *sin_x, double *cos_x); /* |x| <= 2^20 */

#endif
