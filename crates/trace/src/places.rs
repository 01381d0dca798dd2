//! Where modules lie while a recording is loaded.

use crate::load::Loader;
use crate::modules::ModuleLine;

impl Loader<'_> {
    /// All modules get their places at once, because a module's line may be written after its code first ran. Where modules
    /// share addresses one after the other, the lines' sequence numbers decide.
    pub(crate) fn place_modules(&mut self) {
        for line in &self.recording.modules.lines {
            let ModuleLine::Loaded { module, .. } = line else {
                continue;
            };
            let index = self.modules.len() as u32;
            let contested = self.modules.iter().any(|other| other.start < module.end && module.start < other.end);
            self.modules.push(module.clone());
            let object = self.space.place_module(index, module.start, module.end);
            self.module_objects.push(object);
            if !contested {
                self.sites.load(index, module);
            }
        }
        // A contested range belongs to whoever was loaded first until another line says otherwise.
        for object in self.module_objects.iter().rev().flatten() {
            self.space.place_again(*object);
        }
    }

    /// Module lines up to a sequence number take effect.
    pub(crate) fn load_modules(&mut self, sequence: u64) {
        while let Some(line) = self.recording.modules.lines.get(self.next_module_line).filter(|line| line.sequence() <= sequence)
        {
            self.next_module_line += 1;
            let ModuleLine::Loaded { module, .. } = line else {
                continue;
            };
            let index = self.next_module;
            self.next_module += 1;
            self.sites.load(index, module);
            if let Some(object) = self.module_objects[index as usize] {
                self.space.place_again(object);
            }
        }
    }

    /// A block ends. If it was a mapping of its own, a module may be loaded there at once, and used before it is written down:
    /// the C library loads libgcc when a thread is to be unwound. What happens there from now on is that module's affair.
    pub(crate) fn make_room(&mut self, machine: u64) {
        for module in self.module_objects[self.next_module as usize..].iter().flatten() {
            self.space.place_over(*module, machine);
        }
    }
}
