use super::*;
use std::time::Instant;
fn time(name: &str, n: i64, mut f: impl FnMut(i64)) {
    let t = Instant::now();
    let mut worst = 0;
    let mut last = 0u128;
    for i in 0..n {
        f(i);
        if i % 64 == 0 {
            let e = t.elapsed().as_nanos();
            worst = worst.max(e - last);
            last = e;
        }
    }
    println!("{name}: {} ns, worst pause {} us", t.elapsed().as_nanos() / n as u128, worst / 1000);
}
#[test]
#[ignore]
fn bench() {
    let n = 2_000_000_i64;
    let r = |i: i64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) as u64 >> 20) as i64 % 1_000_000_007;
    let perm = |i: i64| (i * 1_234_577 + 17) % 2_000_003; // prime modulus
    for share in [1_i64, 2, 8, 16, 40, 3_000_000] {
        println!("--- {share} in a lane");
        let mut x = Index::new();
        time("put random due", n, |i| {
            x.put(Waiting { due: at(r(i)), ..in_lane(i * 3, (r(i / share) as u64) << 8) })
        });
        println!("bytes {:.2}", x.memory() as f64 / n as f64);
        time("get random", n, |i| {
            std::hint::black_box(x.get(perm(i) * 3));
        });
        time("get missing", n, |i| {
            std::hint::black_box(x.get(perm(i) * 3 + 1));
        });
        time("set_due random", n, |i| x.set_due(perm(i) * 3, at(r(i + 5))));
        time("put again", n, |i| {
            let o = perm(i).min(n - 1);
            x.put(Waiting { due: at(r(i + 9)), ..in_lane(o * 3, (r(o / share) as u64) << 8) })
        });
        let mut popped = 0;
        time("pop, Out, put later", n / 2, |i| {
            if let Some(o) = x.pop_due(at(1_000_000_007)) {
                popped += 1;
                let w = x.get(o).unwrap();
                x.set_stage(o, Stage::Out);
                x.put(Waiting { due: at(2_000_000_000 + i), ..w })
            }
        });
        println!("popped {popped}");
        time("pop, Out, Finished, remove", n / 2, |_| {
            if let Some(o) = x.pop_due(at(4_000_000_007)) {
                x.set_stage(o, Stage::Out);
                x.set_stage(o, Stage::Finished);
                x.remove(o);
            }
        });
        println!("len {}", x.len());
        time("remove random", n, |i| {
            x.remove(perm(i) * 3);
        });
        println!("left {} mem {}", x.len(), x.memory());
    }
}
