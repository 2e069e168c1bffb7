/** Path of the Worker of the tape; with the id of a response behind it, a request kills its object. */
export const KILL_PATH = '/test/kill-object/'
