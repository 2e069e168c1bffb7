/** A number with its unit: "1 second", "2 seconds". @param unit in the singular. */
export const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`
