//! `denoise`

mod bilateral;
mod temporal;

use plimsoll_image::frames::Chain;

#[test]
fn what_cannot_be_meant_is_refused() {
    let wrong = ["denoise", "denoise=median", "denoise=bilateral:4", "denoise=bilateral:1:0", "denoise=temporal:4"];
    for wrong in wrong {
        assert!(wrong.parse::<Chain>().is_err(), "{wrong}");
    }
    let around = |chain: &str| chain.parse::<Chain>().unwrap().frames_around();
    assert_eq!([around("denoise=bilateral"), around("denoise=temporal"), around("denoise=temporal:3")], [0, 1, 3]);
}
