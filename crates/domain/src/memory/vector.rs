//! What a text means, as a direction, and how near two of them are. A second signal beside the
//! terms: it finds what is said in other words, and finds nothing by itself that the terms lose.

use super::rank::{Scored, best};

/// What the terms count for, of one; the meaning has the rest.
const LEXICAL: f64 = 0.5;

/// Eight bits for each dimension: the length is lost, the direction is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector(Vec<i8>);

impl Vector {
    /// Of what a model says. `None`: it points nowhere.
    pub fn of(said: &[f32]) -> Option<Vector> {
        let largest = said.iter().fold(0.0f32, |most, it| most.max(it.abs()));
        if !largest.is_normal() || said.iter().any(|it| !it.is_finite()) {
            return None;
        }
        let scaled = |it: &f32| (it / largest * 127.0).round() as i8;
        Some(Vector(said.iter().map(scaled).collect()))
    }

    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// As it is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().map(|it| it.to_ne_bytes()[0]).collect()
    }

    /// The cosine of the angle to one that is kept: 1 for the same direction. What has other
    /// dimensions is no nearer than what stands at a right angle.
    pub fn cosine(&self, kept: &[u8]) -> f64 {
        if kept.len() != self.0.len() {
            return 0.0;
        }
        let (mut product, mut own, mut other) = (0i64, 0i64, 0i64);
        // No sum over a chunk leaves 32 bits, in which the compiler can add many at once.
        for (ours, theirs) in self.0.chunks(1 << 16).zip(kept.chunks(1 << 16)) {
            let (mut p, mut a, mut b) = (0i32, 0i32, 0i32);
            for (x, y) in ours.iter().zip(theirs) {
                let (x, y) = (i32::from(*x), i32::from(i8::from_ne_bytes([*y])));
                p += x * y;
                a += x * x;
                b += y * y;
            }
            product += i64::from(p);
            own += i64::from(a);
            other += i64::from(b);
        }
        let lengths = (own as f64).sqrt() * (other as f64).sqrt();
        if lengths > 0.0 { product as f64 / lengths } else { 0.0 }
    }
}

/// The nearest of some memories, and how near the farthest of them all is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Nearest {
    pub found: Vec<Scored>,
    pub least: f64,
}

impl Nearest {
    /// Of the cosines of all. What stands at a right angle or beyond has nothing to do with the
    /// question.
    pub fn of(mut cosines: Vec<(i64, f64)>, limit: usize) -> Nearest {
        let least = cosines.iter().map(|it| it.1).fold(f64::INFINITY, f64::min).max(0.0);
        cosines.retain(|it| it.1 > 0.0);
        Nearest { found: best(cosines, limit), least }
    }
}

/// Both signals as one: each is stretched over nought to one, from the least that any memory has
/// to the most, so that neither drowns the other. Without a word in common that least is nought.
pub fn fused(lexical: &[Scored], nearest: &Nearest, limit: usize) -> Vec<Scored> {
    let mut shares: Vec<(i64, f64)> = stretched(lexical, 0.0, LEXICAL).collect();
    shares.extend(stretched(&nearest.found, nearest.least, 1.0 - LEXICAL));
    shares.sort_unstable_by_key(|it| it.0);
    let mut sums: Vec<(i64, f64)> = Vec::with_capacity(shares.len());
    for (doc, share) in shares {
        match sums.last_mut() {
            Some((last, sum)) if *last == doc => *sum += share,
            _ => sums.push((doc, share)),
        }
    }
    best(sums, limit)
}

fn stretched(found: &[Scored], least: f64, weight: f64) -> impl Iterator<Item = (i64, f64)> {
    let most = found.iter().map(|it| it.score).fold(least, f64::max);
    found.iter().map(move |it| {
        // Where all are alike, all are the best.
        let share = if most > least { (it.score - least) / (most - least) } else { 1.0 };
        (it.doc, weight * share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(of: &[(i64, f64)]) -> Vec<Scored> {
        of.iter().map(|(doc, score)| Scored { doc: *doc, score: *score }).collect()
    }

    fn docs(found: &[Scored]) -> Vec<i64> {
        found.iter().map(|it| it.doc).collect()
    }

    #[test]
    fn eight_bits_keep_the_direction() {
        let said: Vec<f32> = (0..1536).map(|it| ((it * 37 % 101) as f32 - 50.0) / 1000.0).collect();
        let other: Vec<f32> = (0..1536).map(|it| ((it * 53 % 97) as f32 - 48.0) / 500.0).collect();
        let exact = |a: &[f32], b: &[f32]| {
            let sum = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
            };
            sum(a, b) / (sum(a, a) * sum(b, b)).sqrt()
        };
        let (a, b) = (Vector::of(&said).unwrap(), Vector::of(&other).unwrap());
        assert!((a.cosine(&a.to_bytes()) - 1.0).abs() < 1e-9);
        assert!((a.cosine(&b.to_bytes()) - exact(&said, &other)).abs() < 0.005);
        let longer: Vec<f32> = said.iter().map(|it| it * -8.0).collect();
        let opposite = Vector::of(&longer).unwrap();
        assert!((a.cosine(&opposite.to_bytes()) + 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_points_nowhere_is_no_vector() {
        for said in [&[][..], &[0.0, 0.0], &[1.0, f32::NAN], &[1.0, f32::INFINITY]] {
            assert_eq!(Vector::of(said), None, "{said:?}");
        }
        let one = Vector::of(&[1.0, 2.0]).unwrap();
        assert_eq!(one.cosine(&[1]), 0.0);
        assert_eq!(one.cosine(&[0, 0]), 0.0);
    }

    #[test]
    fn what_both_signals_know_comes_before_what_one_knows() {
        let lexical = scored(&[(1, 9.0), (2, 8.0), (3, 1.0)]);
        let close = Nearest::of(vec![(2, 0.9), (5, 0.1), (4, 0.85)], 10);
        assert_eq!(docs(&close.found), [2, 4, 5]);
        let found = fused(&lexical, &close, 10);
        assert_eq!(docs(&found), [2, 1, 4, 3, 5]);
        assert!((found[0].score - (0.5 * 8.0 / 9.0 + 0.5)).abs() < 1e-9);
        assert_eq!(docs(&fused(&lexical, &close, 2)), [2, 1]);
        // Either may be silent.
        assert_eq!(docs(&fused(&lexical, &Nearest::default(), 10)), [1, 2, 3]);
        assert_eq!(fused(&[], &Nearest::of(vec![(2, 0.9)], 10), 10), scored(&[(2, 0.5)]));
    }

    #[test]
    fn what_stands_at_a_right_angle_or_beyond_is_not_near() {
        let close = Nearest::of(vec![(1, 0.5), (2, 0.0), (3, -0.5), (4, 0.25)], 10);
        assert_eq!(close, Nearest { found: scored(&[(1, 0.5), (4, 0.25)]), least: 0.0 });
        // The farthest of them counts though it is not among the few that are wanted.
        let close = Nearest::of(vec![(1, 0.9), (2, 0.8), (3, 0.7)], 2);
        assert_eq!(close, Nearest { found: scored(&[(1, 0.9), (2, 0.8)]), least: 0.7 });
    }
}
