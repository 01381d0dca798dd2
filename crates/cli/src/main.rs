#![forbid(unsafe_code)]
mod program;
mod runtime;
mod wrapper;

fn main() {
    let args: Vec<_> = std::env::args_os().skip(2).collect();
    let language = if std::env::args().nth(1).as_deref() == Some("cc") { wrapper::Language::C } else { wrapper::Language::Cxx };
    println!("{:?}", wrapper::become_compiler(language, &args));
}
