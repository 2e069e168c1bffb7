/** The longest request body, in bytes (interface, Limits: 50 MB on every endpoint that reads JSON). */
export const MAXIMUM_BODY_BYTES = 52_428_800
