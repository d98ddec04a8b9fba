//! Commands of `workloads/Makefile`, with another compiler and other flags in them.
//!
//! They come from make's output when `weigh` was built, so that nothing is written twice.

use rand::Rng;
use rand::seq::SliceRandom;

use super::compiler::Compiler;
use weigh_model::shell::words;
use weigh_workload::sources::RECIPE;

/// As seen from the directory of the sources.
const OBJECTS: &str = "../objects";

/// Commands as words, executed in the directory of the sources.
pub struct Recipe {
    compiler: Vec<String>,
    compiles: Vec<Vec<String>>,
    links: Vec<Vec<String>>,
}

impl Recipe {
    pub fn of(compiler: &Compiler) -> Recipe {
        let commands = RECIPE.lines().filter_map(|line| Some(&line[line.find("{CC}")?..]));
        let filled = commands.map(|line| filled(line, compiler));
        let (compiles, links) = filled.partition(|command| command.iter().any(|word| word == "-c"));
        let mut own = vec![compiler.file.display().to_string()];
        own.extend_from_slice(&compiler.cflags);
        Recipe { compiler: own, compiles, links }
    }

    /// All that is compiled once, for so many links.
    pub fn compiles(&self, links: usize) -> Vec<Vec<String>> {
        let marks = (0..links).map(|link| {
            let file = ["-c".into(), "-o".into(), mark_object(link), mark_source(link)];
            self.compiler.iter().cloned().chain(file).collect()
        });
        self.compiles.iter().cloned().chain(marks).collect()
    }

    /// Links the executable and the small one, into a directory of this number.
    pub fn links(&self, link: usize, chance: &mut impl Rng) -> Vec<Vec<String>> {
        self.links.iter().map(|command| in_order(command.clone(), link, chance)).collect()
    }
}

/// The file of C that says which link it is.
pub fn mark_source(link: usize) -> String {
    format!("mark-{link}.c")
}

fn mark_object(link: usize) -> String {
    format!("{OBJECTS}/mark-{link}.o")
}

pub fn output(command: &[String]) -> Option<&str> {
    let option = command.iter().position(|word| word == "-o")?;
    Some(command.get(option + 1)?)
}

fn filled(line: &str, compiler: &Compiler) -> Vec<String> {
    let words = words(line).expect("it is what make printed when this was built");
    let fill = |word: String| match word.as_str() {
        "{CC}" => vec![compiler.file.display().to_string()],
        "{CFLAGS}" => compiler.cflags.clone(),
        "{LDFLAGS}" => compiler.ldflags.clone(),
        _ => vec![word.replace("{OUT}", OBJECTS)],
    };
    words.into_iter().flat_map(fill).collect()
}

/// The objects of a link in another order, the first link's as they are; and the one that says which it is.
fn in_order(mut command: Vec<String>, link: usize, chance: &mut impl Rng) -> Vec<String> {
    let is_object = |word: &String| word.starts_with(OBJECTS) && word.ends_with(".o");
    if let Some(first) = command.iter().position(is_object) {
        command.insert(first, mark_object(link));
    }
    if link > 0 {
        let mut objects: Vec<String> =
            command.iter().filter(|word| is_object(word)).cloned().collect();
        objects.shuffle(chance);
        let places = command.iter_mut().filter(|word| is_object(word));
        places.zip(objects).for_each(|(place, object)| *place = object);
    }
    if let Some(file) = command.iter().position(|word| word == "-o").map(|option| option + 1) {
        command[file] = command[file].replace(OBJECTS, &format!("../{link}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn recipe() -> Recipe {
        let flags = |text: &[&str]| text.iter().map(|&word| word.to_owned()).collect();
        Recipe::of(&Compiler {
            file: "/bin/cc".into(),
            cflags: flags(&["-O3", "-DX=a b"]),
            ldflags: flags(&["-s"]),
        })
    }

    #[test]
    fn nothing_of_the_makefile_is_lost_and_a_flag_is_one_word() {
        let recipe = recipe();
        let compiles = recipe.compiles(2);
        assert!(compiles.len() > 60, "{}", compiles.len());
        for command in &compiles {
            assert_eq!(command[0], "/bin/cc");
            assert!(command.contains(&"-DX=a b".into()), "{command:?}");
            assert!(output(command).unwrap().starts_with("../objects/"), "{command:?}");
        }
        let is_of_cpu = |it: &&Vec<String>| it.last().is_some_and(|file| file.starts_with("cpu/"));
        let of_cpu = compiles.iter().find(is_of_cpu).unwrap();
        assert!(of_cpu.contains(&"-DGROUP=\"cpu\"".into()), "{of_cpu:?}");
        assert!(!format!("{compiles:?}{:?}", recipe.links).contains('{'));
    }

    #[test]
    fn each_link_has_the_same_objects_in_another_order_and_says_which_it_is() {
        let recipe = recipe();
        let compiled: BTreeSet<String> =
            recipe.compiles(3).iter().filter_map(|it| output(it).map(str::to_owned)).collect();
        let mut chance = ChaCha8Rng::seed_from_u64(7);
        let links: Vec<_> = (0..3).map(|link| recipe.links(link, &mut chance)).collect();
        let mut orders = BTreeSet::new();
        for (number, link) in links.iter().enumerate() {
            let [whole, small] = &link[..] else { panic!("{link:?}") };
            assert_eq!(output(whole), Some(&*format!("../{number}/weigh-workloads")));
            assert_eq!(output(small), Some(&*format!("../{number}/weigh-workloads-small")));
            assert!(whole.contains(&"-s".into()) && whole.last().unwrap() == "-lm", "{whole:?}");
            let objects: Vec<_> = whole.iter().filter(|word| word.ends_with(".o")).collect();
            assert!(objects.iter().all(|object| compiled.contains(*object)), "{objects:?}");
            assert!(objects.contains(&&mark_object(number)), "{objects:?}");
            let others = objects.into_iter().filter(|object| !object.contains("mark-"));
            let others: Vec<String> = others.cloned().collect();
            let set: BTreeSet<String> = others.iter().cloned().collect();
            assert_eq!(set.len(), others.len());
            orders.insert(others);
        }
        assert_eq!(orders.len(), 3);
    }
}
