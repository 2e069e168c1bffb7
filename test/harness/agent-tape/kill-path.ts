/** Path of the Worker of the tape; with an organization and the id of its response behind it, a request kills the object. */
export const KILL_PATH = '/test/kill-object/'
