//! `cargo xtask package`: what others install from, into `target/package`.

use anyhow::Result;
use clap::{Args, ValueEnum};
use xtask::release::{archive, crates, debian, wheel};

#[derive(Debug, Args)]
pub struct Options {
    /// Which packages. Without one, all of them.
    #[arg(value_enum)]
    routes: Vec<Route>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Route {
    /// For pip and uv; needs Python's venv, and maturin from PyPI.
    Wheel,
    /// For Debian 12 and later; needs dpkg-dev.
    Deb,
    /// For cargo: a package of each crate, as it would be published.
    Crates,
    /// For other systems: programs that need no library; needs glibc's archives (Debian: libc6-dev).
    Archive,
}

pub fn run(options: &Options) -> Result<bool> {
    for route in Route::value_variants() {
        if !options.routes.is_empty() && !options.routes.contains(route) {
            continue;
        }
        match route {
            Route::Wheel => println!("{}", wheel::make()?.display()),
            Route::Deb => println!("{}", debian::make()?.display()),
            Route::Crates => crates::make()?.iter().for_each(|path| println!("{}", path.display())),
            Route::Archive => println!("{}", archive::make()?.display()),
        }
    }
    Ok(true)
}
