// A control plane of its own for each test.

import { KubeConfig } from "@kubernetes/client-node";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const SETPOINT = process.env.SETPOINT ?? "setpoint";

export class ControlPlane {
  private constructor(
    readonly config: KubeConfig,
    private readonly program: ChildProcess,
    private readonly folder: string,
  ) {}

  /** Starts control loops, scheduler and one simulated node; returns when they are ready. */
  static async start(): Promise<ControlPlane> {
    const folder = await mkdtemp(join(tmpdir(), "setpoint-"));
    const options = ["up", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir", folder];
    const program = spawn(SETPOINT, options, { stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface({ input: program.stdout })) {
      if (line.startsWith("ready ")) {
        const config = new KubeConfig();
        config.loadFromFile(line.split("kubeconfig=")[1]);
        return new ControlPlane(config, program, folder);
      }
    }
    throw new Error("setpoint ended before it was ready");
  }

  async stop(): Promise<void> {
    const ended = once(this.program, "exit");
    this.program.kill();
    await ended;
    await rm(this.folder, { recursive: true });
  }
}

/** Runs a test with a control plane that ends with it. */
export function withControlPlane(test: (config: KubeConfig) => Promise<void>): () => Promise<void> {
  return async () => {
    const plane = await ControlPlane.start();
    try {
      await test(plane.config);
    } finally {
      await plane.stop();
    }
  };
}
