/* Images that are being prepared (burrow image prepare), for `burrow image ls`. */
#pragma once

/* A line for each that is not ready: how far it is, or why it failed. */
void image_preparing_print(const char *data);
