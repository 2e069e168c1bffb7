/** A start that failed. The message is one line made for a person and holds no secret. */
export class StartError extends Error {}

/** Thrown for a wrong command line or option; the message is one line made for a person. */
export class OptionError extends Error {}
