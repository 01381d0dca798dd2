//! Names that every script knows, unless it defines them itself.

macro_rules! builtins {
    ($($variant:ident $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Builtin {
            $($variant,)*
        }

        impl Builtin {
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

builtins! {
    True "true",
    False "false",
    Bool "Bool",
    Int "Int",
    Events "Events",
    Union "union",
    Inter "inter",
    Diff "diff",
    UnionOfAll "Union",
    InterOfAll "Inter",
    Member "member",
    Card "card",
    Empty "empty",
    SetOf "set",
    Subsets "Set",
    SequenceOf "seq",
    Head "head",
    Tail "tail",
    Null "null",
    Length "length",
    Concat "concat",
    Element "elem",
    Productions "productions",
    Extensions "extensions",
    Chaos "CHAOS",
    Run "RUN",
    Diverge "DIV",
}
