//! What a model's answer costs, at the operator's prices. Which money that is nobody here knows:
//! none is named, and none is turned into another.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_domain::event::Usage;

use super::{Model, ModelError, Reply, Request, Suggestion};

/// The dearest that can be said: a thousand for each token, in whatever small money. In millionths
/// it is still a whole number that a float holds without loss.
pub const PRICE_MAX: f64 = 1e9;

const MILLION: u64 = 1_000_000;

/// What a million tokens cost, in millionths of the money. Whole numbers, because sums of floats
/// depend on their order and lose the last millionth, and a bill must not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a price is a number from 0 to {PRICE_MAX}, with six decimals at the most")]
pub struct NotAPrice;

impl Price {
    /// From what is written in the settings: money for a million tokens. What is finer than can be
    /// kept is refused, and not rounded: it might become nothing.
    pub fn new(money: f64) -> Result<Price, NotAPrice> {
        let micros = (money * MILLION as f64).round();
        let holds = (0.0..=PRICE_MAX).contains(&money) && micros / MILLION as f64 == money;
        if holds { Ok(Price(micros as u64)) } else { Err(NotAPrice) }
    }
}

/// Both prices of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prices {
    pub input: Price,
    pub output: Price,
}

impl Prices {
    /// The cost of one answer in millionths of the money. It is rounded once, half of one upwards,
    /// and only sums of such whole numbers are made after.
    pub fn cost_micros(self, usage: Usage) -> u64 {
        let of = |tokens: u64, price: Price| u128::from(tokens) * u128::from(price.0);
        let exact = of(usage.input_tokens, self.input) + of(usage.output_tokens, self.output);
        let rounded = (exact + u128::from(MILLION / 2)) / u128::from(MILLION);
        u64::try_from(rounded).unwrap_or(u64::MAX)
    }
}

/// A model whose answers say what they cost, whichever protocol it speaks.
#[derive(Debug)]
pub struct Priced {
    pub model: Arc<dyn Model>,
    pub prices: Prices,
}

#[async_trait]
impl Model for Priced {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        let mut reply = self.model.generate(request).await?;
        reply.usage.cost_micros = self.prices.cost_micros(reply.usage);
        Ok(reply)
    }

    fn suggestions(&self) -> &[Suggestion] {
        self.model.suggestions()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost((input, output): (f64, f64), input_tokens: u64, output_tokens: u64) -> u64 {
        let (input, output) = (Price::new(input).unwrap(), Price::new(output).unwrap());
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        Prices { input, output }.cost_micros(usage)
    }

    #[test]
    fn an_answer_costs_its_tokens_times_their_prices_to_the_last_millionth() {
        assert_eq!(cost((3.0, 15.0), 1_000_000, 1_000_000), 18_000_000);
        assert_eq!(cost((3.0, 15.0), 12, 7), 12 * 3 + 7 * 15);
        assert_eq!(cost((0.0, 15.0), 12, 7), 105);
        assert_eq!(cost((3.0, 15.0), 0, 0), 0);
        // No float holds a tenth; a sum of three of them is not three tenths.
        assert_eq!(cost((0.1, 0.2), 10_000_000_001, 10_000_000_001), 3_000_000_000);
        assert_eq!(cost((0.075, 0.3), 40, 0), 3);
    }

    #[test]
    fn half_a_millionth_is_rounded_up_once_for_both_prices() {
        assert_eq!(cost((0.5, 0.0), 1, 0), 1);
        assert_eq!(cost((0.499999, 0.0), 1, 0), 0);
        // Each by itself would be rounded up: two.
        assert_eq!(cost((0.5, 0.5), 1, 1), 1);
        assert_eq!(cost((2.5, 0.0), 1, 0), 3);
    }

    #[test]
    fn absurd_counts_at_the_highest_price_cost_the_most_that_can_be_said() {
        assert_eq!(cost((PRICE_MAX, PRICE_MAX), u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn a_price_is_kept_as_it_was_written_or_refused() {
        let prices = [
            (0.0, 0),
            (3.0, 3_000_000),
            (0.1, 100_000),
            (0.000001, 1),
            (1.234567, 1_234_567),
            (999_999_999.999999, 999_999_999_999_999),
            (PRICE_MAX, 1_000_000_000_000_000),
        ];
        for (money, micros) in prices {
            assert_eq!(Price::new(money), Ok(Price(micros)), "{money}");
        }
        let none = [-1.0, -0.000001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-7, 0.1234567];
        for money in none.into_iter().chain([1_000_000_001.0, f64::MAX]) {
            assert_eq!(Price::new(money), Err(NotAPrice), "{money}");
        }
    }
}
