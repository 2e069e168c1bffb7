/** A deployment that cannot go on. The message is made for a person and holds no secret. */
export class DeployError extends Error {}
