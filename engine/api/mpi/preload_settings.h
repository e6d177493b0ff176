// What RANKINE_MPI asks of the preload library: words with commas between them.
#pragma once

namespace rankine::mpi {

struct PreloadSettings {
  bool takes = true;      // "on", the default; "off": everything is passed on
  bool reports = false;   // "report": say at the end what was done
  bool messages = false;  // "messages": by MPI's messages also where ranks could share memory;
                          // "memory", the default, is the contrary
};

// Read once. A word that is none of these ends the process, with what is allowed.
const PreloadSettings& preload_settings();

}  // namespace rankine::mpi
