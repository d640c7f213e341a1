/* kopi/math.h against libm in double, with the bounds that it states, and the conversions for every 16-bit number. */
#include <check.h>
#include <kopi/math.h>
#include <math.h>
#include <stdlib.h>

/* Every so many of the floats of one sign from 0 to the bits of `max`. */
#define EACH(x, sign, max, step)                                                                                       \
    for (uint32_t bits_ = 0, end_ = kopi_f32_bits(max); bits_ <= end_; bits_ += (step))                                \
        for (float x = kopi_bits_f32(bits_ | (sign)), *once_ = &x; once_; once_ = NULL)

enum { STEP = 1009 };

static void exp_side(uint32_t sign, float max)
{
    double worst = 0;
    EACH(x, sign, max, STEP) worst = fmax(worst, fabs(kopi_exp(x) / exp((double)x) - 1));
    ck_assert_double_lt(worst, 1.1e-7);
}

START_TEST(exp_is_near)
{
    exp_side(0, 88.0f);
    exp_side(0x80000000u, 87.0f);
    ck_assert_float_eq(kopi_exp(0.0f), 1.0f);
    ck_assert_float_eq(kopi_exp(1000.0f), kopi_exp(88.0f));
    ck_assert_float_eq(kopi_exp(INFINITY), kopi_exp(88.0f));
    ck_assert(isfinite(kopi_exp(88.0f)));
    ck_assert_uint_eq(kopi_f32_bits(kopi_exp(-87.5f)), 0);
    ck_assert_uint_eq(kopi_f32_bits(kopi_exp(-INFINITY)), 0);
    ck_assert(isnan(kopi_exp(NAN)));
}
END_TEST

START_TEST(tanh_is_near)
{
    double worst = 0;
    EACH(x, 0, 3e38f, STEP) worst = fmax(worst, fabs(kopi_tanh(x) - tanh((double)x)));
    ck_assert_double_lt(worst, 1.2e-7);
    EACH(x, 0, 3e38f, STEP) ck_assert(kopi_tanh(-x) == -kopi_tanh(x) && kopi_tanh(x) <= 1.0f);
    ck_assert_float_eq(kopi_tanh(INFINITY), 1.0f);
    ck_assert_uint_eq(kopi_f32_bits(kopi_tanh(-0.0f)), 0x80000000u);
    ck_assert(isnan(kopi_tanh(NAN)));
}
END_TEST

static double silu(double x) { return x / (1 + exp(-x)); }
static double gelu(double x) { return x * 0.5 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

START_TEST(silu_and_gelu_are_near)
{
    double worst_silu = 0, worst_gelu = 0;
    for (uint32_t sign = 0; sign < 2; sign++) EACH(x, sign << 31, 1e4f, STEP)
        {
            worst_silu = fmax(worst_silu, fabs(kopi_silu(x) - silu(x)) / (1e-30 + fabs((double)x)));
            worst_gelu = fmax(worst_gelu, fabs(kopi_gelu_tanh(x) - gelu(x)) / (1e-30 + fabs((double)x)));
        }
    ck_assert_double_lt(worst_silu, 2e-7); /* relative to x */
    ck_assert_double_lt(worst_gelu, 5e-7);
    ck_assert_float_eq(kopi_silu(0.0f), 0.0f);
    ck_assert_float_eq(kopi_gelu_tanh(0.0f), 0.0f);
    ck_assert_float_eq(kopi_silu(1e30f), 1e30f);
    ck_assert_float_eq(kopi_gelu_tanh(1e30f), 1e30f);
    ck_assert(isnan(kopi_silu(NAN)) && isnan(kopi_gelu_tanh(NAN)));
}
END_TEST

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}

START_TEST(half_precision)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = kopi_f16_to_f32((uint16_t)h);
        if ((h & 0x7fff) > 0x7c00) {
            ck_assert(isnan(f) && isnan(kopi_f16_to_f32(kopi_f32_to_f16(f))));
            continue;
        }
        ck_assert_uint_eq(kopi_f32_to_f16(f), h);
        if ((h & 0x7c00) == 0x7c00) ck_assert(isinf(f) && !signbit(f) == !(h >> 15));
        else ck_assert_double_eq(f, half_value((uint16_t)h));
        if ((h & 0x7fff) >= 0x7bff) continue;
        float mid = (float)((half_value((uint16_t)h) + half_value((uint16_t)(h + 1))) / 2); /* a tie goes to even */
        ck_assert_uint_eq(kopi_f32_to_f16(mid), h & 1 ? h + 1 : h);
        ck_assert_uint_eq(kopi_f32_to_f16(kopi_bits_f32(kopi_f32_bits(mid) + 1)), h + 1);
        ck_assert_uint_eq(kopi_f32_to_f16(kopi_bits_f32(kopi_f32_bits(mid) - 1)), h);
    }
    ck_assert_uint_eq(kopi_f32_to_f16(65519.996f), 0x7bff);
    ck_assert_uint_eq(kopi_f32_to_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(kopi_f32_to_f16(-1e30f), 0xfc00);
    ck_assert_uint_eq(kopi_f32_to_f16(0x1p-149f), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("math");
    TCase *t = tcase_create("functions");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, exp_is_near);
    tcase_add_test(t, tanh_is_near);
    tcase_add_test(t, silu_and_gelu_are_near);
    tcase_add_test(t, half_precision);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
