/* The machine that we run on, by the name that images have for it. */
#pragma once

/* "amd64", "arm64"; "unknown" is no image's. */
const char *architecture_name(void);
